package supervisor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"sglaunch/internal/gpu"
	"sglaunch/internal/history"
	"sglaunch/patch"
	"sglaunch/supervisor/machine"
)

// A patch whose server gave wrong answers is remembered, for the GPUs and the
// FlashInfer with which it did: whether a tuned kernel is right depends on both.

// kit is what decides whether a kernel computes rightly. Empty is not known.
type kit struct {
	GPU        string // names of the launch's devices
	FlashInfer string // version
}

// has reports whether a mark speaks of this patch on this machine.
func (k kit) has(m history.Wrong, p patch.Patch) bool {
	return m.GPU == k.GPU && m.FlashInfer == k.FlashInfer && m.Content == PatchContent(p)
}

// PatchContent names what a patch changes, whatever it is called and whatever
// its policies: a patch that was mended is another one.
func PatchContent(p patch.Patch) string {
	if resolved, err := p.Resolved(); err == nil {
		p = resolved
	}
	data, err := json.Marshal([]any{p.Module, p.File, p.Edits, p.Diff, p.Variants})
	if err != nil {
		return "" // strings and numbers always encode
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// TellWrong says of a patch why it is left out, and how that ends.
func TellWrong(m history.Wrong) string {
	return fmt.Sprintf("%s gave wrong answers%s on %s (%s); `sglaunch patch trust %s` forgets that",
		m.Patch, m.With(), m.At.Format("2006-01-02"), m.Reason, m.Patch)
}

// lookAtKit finds out about GPUs and FlashInfer before a patch is applied.
func (h *hands) lookAtKit(ctx context.Context) kit {
	h.mu.Lock()
	devices := h.baseline
	h.mu.Unlock()
	k := kit{GPU: gpuNames(devices), FlashInfer: h.flashInfer(ctx)}
	h.mu.Lock()
	h.kit = k
	h.mu.Unlock()
	return k
}

// gpuNames are the names of devices, each once.
func gpuNames(devices []gpu.GPU) string {
	names := map[string]bool{}
	for _, g := range devices {
		if g.Name != "" {
			names[g.Name] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), ", ")
}

// flashInfer is the version of the installed FlashInfer. Its distribution is
// called otherwise than its package, so the folder beside the package tells.
func (s Setup) flashInfer(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	return <-within(ctx, func() string {
		in, err := s.interpreter(ctx)
		if err != nil {
			return ""
		}
		return FlashInfer(ctx, in)
	})
}

// FlashInfer is the version of FlashInfer that an interpreter would import; ""
// where that cannot be known.
func FlashInfer(ctx context.Context, in patch.Interpreter) string {
	found, err := patch.Locate(ctx, in, "flashinfer")
	if err != nil {
		return ""
	}
	site := filepath.Dir(filepath.Dir(found.Path))
	for _, form := range []string{"flashinfer_python-*.dist-info", "flashinfer-*.dist-info"} {
		if all, err := filepath.Glob(filepath.Join(site, form)); err == nil && len(all) > 0 {
			_, version, _ := strings.Cut(strings.TrimSuffix(filepath.Base(all[0]), ".dist-info"), "-")
			return version
		}
	}
	return ""
}

// withKit adds to a verdict on a patch's answers what it holds for.
func (h *hands) withKit(r machine.Report) machine.Report {
	name, _ := r.Fields["patch"].(string)
	if r.Event != "patch" || r.Fields["output_checked"] == nil || name == "" {
		return r
	}
	h.mu.Lock()
	k := h.kit
	h.mu.Unlock()
	r.Fields = maps.Clone(r.Fields) // the journal holds the same map
	r.Fields["gpu"], r.Fields["flashinfer"], r.Fields["content"] = k.GPU, k.FlashInfer, PatchContent(policyOf(h.Patches, name))
	return r
}
