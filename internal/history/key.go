package history

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"slices"
	"strings"

	"sglaunch/internal/mask"
)

// Key says which starts can be compared: those of the same model with the same
// flags, patches and SGLang version on the same machine, from caches of the
// same temperature.
type Key struct {
	Machine string `json:"machine"` // see Machine
	Model   string `json:"model"`   // path or name, as given to the server
	Flags   string `json:"flags"`   // see FlagsDigest
	Version string `json:"version"` // of SGLang; "" = unknown
	Patches string `json:"patches"` // see PatchSet
	Caches  Caches `json:"caches"`
}

// Caches tell what a start finds already there.
type Caches struct {
	Pages Warmth `json:"pages"` // the checkpoint in the page cache
	JIT   Warmth `json:"jit"`   // compiled kernels
}

// Warmth is how much of a cache was there. Cold and warm starts differ by a
// factor of ten and are never averaged.
type Warmth string

// The degrees of warmth.
const (
	WarmthUnknown Warmth = ""
	Cold          Warmth = "cold"
	Partial       Warmth = "partial"
	Warm          Warmth = "warm"
)

// SameServer reports whether two keys differ in nothing but patches and
// caches. Only then can a patch be blamed for being new.
func (k Key) SameServer(other Key) bool {
	k.Patches, k.Caches = other.Patches, other.Caches
	return k == other
}

// Machine identifies this machine by its machine-id, where there is none by
// what the firmware calls it or by its host name, and by the GPUs that a launch
// names: a container image may carry the same machine-id to many hosts, or none
// and a host name that is new each time, and home directories are shared.
func Machine(gpuUUIDs []string) string {
	return machine([]string{"/etc/machine-id", "/sys/class/dmi/id/product_uuid"}, gpuUUIDs)
}

func machine(idFiles []string, gpuUUIDs []string) string {
	var id string
	for _, path := range idFiles {
		if data, err := os.ReadFile(path); err == nil && id == "" {
			id = strings.TrimSpace(string(data))
		}
	}
	if id == "" {
		id, _ = os.Hostname()
	}
	gpus := slices.Clone(gpuUUIDs)
	slices.Sort(gpus)
	return digest(append([]string{id}, gpus...))
}

// PatchSet names a set of patches, in no particular order.
func PatchSet(names []string) string {
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	return strings.Join(slices.Compact(sorted), " ")
}

// irrelevant are flags that change nothing about how long a start takes or
// whether it succeeds.
var irrelevant = map[string]bool{
	"--host": true, "--port": true, "--nccl-port": true, "--dist-init-addr": true, "--nccl-init-addr": true,
	"--served-model-name": true, "--random-seed": true,
	"--log-level": true, "--log-level-http": true, "--log-requests": true, "--log-requests-level": true,
	"--enable-metrics": true, "--watchdog-timeout": true, "--show-time-cost": true,
	"--model-path": true, "--model": true, // Key.Model
}

// relevant are prefixes of variables that change what a start does.
var relevant = []string{
	"SGLANG_", "SGL_", "FLASHINFER_", "TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "TRITON_", "NCCL_", "CUDA_", "DG_",
}

// FlagsDigest is a short name for how a server was asked to run: args as they
// follow the module's name, env the server's environment. Order, spelling
// (--tp 8, --tp=8) and what does not matter to a start are left out.
func FlagsDigest(args, env []string) string {
	parts := flags(args)
	for _, kv := range env {
		if isRelevant(kv) {
			parts = append(parts, kv)
		}
	}
	slices.Sort(parts)
	return digest(slices.Compact(parts))
}

func isRelevant(kv string) bool {
	name, _, _ := strings.Cut(kv, "=")
	if mask.Name(name) || strings.Contains(name, "LOG") {
		return false
	}
	return slices.ContainsFunc(relevant, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// flags brings every flag with its values into one string.
func flags(args []string) []string {
	var all []string
	for i := 0; i < len(args); {
		name, value, found := strings.Cut(args[i], "=")
		item := []string{name}
		if found {
			item = append(item, value)
		}
		for i++; i < len(args) && !strings.HasPrefix(args[i], "--"); i++ {
			item = append(item, args[i])
		}
		if !irrelevant[name] && !mask.Name(name) {
			all = append(all, strings.Join(item, " "))
		}
	}
	return all
}

// digest is short, as people read it in tables; a clash costs a wrong estimate.
func digest(parts []string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:6])
}

// PatchNames are the patches in force, the inverse of PatchSet.
func (k Key) PatchNames() []string { return strings.Fields(k.Patches) }
