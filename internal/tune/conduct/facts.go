package conduct

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sglaunch/internal/preflight"
	"sglaunch/internal/sglangcmd"
	"sglaunch/internal/tune"
	"sglaunch/internal/tune/bench"
	"sglaunch/patch"
)

// packages are those whose version decides how fast a server is.
var packages = []string{"sglang", "torch", "flashinfer", "triton", "sgl_kernel", "transformers", "vllm"}

const factsLimit = 30 * time.Second

// learn gathers what else a measurement depends on. What cannot be found out is
// left out: it is then equal in all launches.
func (s *site) learn(ctx context.Context) tune.Facts {
	ctx, cancel := context.WithTimeout(ctx, factsLimit)
	defer cancel()
	f := tune.Facts{
		Base: shortSum(s.base.Text()), Versions: map[string]string{}, Patches: map[string]string{},
		Model: modelFact(s.baseCommand()),
	}
	if in, err := s.interpreter(ctx); err == nil {
		for _, name := range packages {
			if found, err := patch.Locate(ctx, in, name); err == nil && found.Version != "" {
				f.Versions[name] = found.Version
			}
		}
	}
	f.Bench = s.clientFact(ctx)
	for _, list := range [][]patch.Patch{s.base.Patches, s.study.Patches} {
		for _, p := range list {
			text, _ := json.Marshal(p)
			f.Patches[p.Label()] = shortSum(string(text))
		}
	}
	ctx, cancel = context.WithTimeout(ctx, snapshotLimit)
	defer cancel()
	if sample, err := s.eyes.source.Snapshot(ctx); err == nil {
		f.Driver = sample.Driver
		for _, g := range s.eyes.devices(sample) {
			f.GPUs = append(f.GPUs, g.UUID)
		}
	}
	return f
}

// clientFact says what the clients are that do not come with the server: vllm by
// its version, a command of one's own by the files that it names.
func (s *site) clientFact(ctx context.Context) string {
	var all []string
	for _, l := range s.study.Loads {
		switch {
		case len(l.Command) > 0:
			all = append(all, l.Name+" "+filesFact(append(slices.Clone(l.Command), l.Args...), s.folder))
		case l.Bench == bench.VLLM:
			if in, err := patch.FindInterpreter(ctx, []string{"vllm"}, s.folder, s.environment()); err == nil {
				if found, err := patch.Locate(ctx, in, "vllm"); err == nil {
					all = append(all, l.Name+" vllm "+found.Version)
				}
			}
		}
	}
	return strings.Join(all, ", ")
}

// scriptMost is how large a script may be: what is larger is a data set.
const scriptMost = 1 << 20

// filesFact is a digest of the small files among the words of a command.
func filesFact(argv []string, dir string) string {
	var content []byte
	for i, arg := range argv {
		path := arg
		if found, err := exec.LookPath(arg); i == 0 && err == nil {
			path = found
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() <= scriptMost {
			text, _ := os.ReadFile(path)
			content = append(content, text...)
		}
	}
	return shortSum(string(content))
}

// modelFact is the model and what its files say that it is: weights are not
// read, but their index tells one checkpoint from another.
func modelFact(cmd sglangcmd.Command) string {
	folder := preflight.ModelDir(cmd)
	var content []byte
	for _, name := range []string{"config.json", "model.safetensors.index.json", "generation_config.json"} {
		text, _ := os.ReadFile(filepath.Join(folder, name))
		content = append(content, text...)
	}
	return cmd.Server().Model + " " + shortSum(string(content))
}

func shortSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
