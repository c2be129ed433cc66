package conduct

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"sglaunch/internal/preflight"
	"sglaunch/internal/sglangcmd"
	"sglaunch/internal/tune"
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
		Model: modelFact(s.base.Server.Command, s.env, s.folder),
	}
	if in, err := s.interpreter(ctx); err == nil {
		for _, name := range packages {
			if found, err := patch.Locate(ctx, in, name); err == nil && found.Version != "" {
				f.Versions[name] = found.Version
			}
		}
	}
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

// modelFact is the model and what its files say that it is: weights are not
// read, but their index tells one checkpoint from another.
func modelFact(argv, env []string, dir string) string {
	model := sglangcmd.Parse(argv, env, dir).Server().Model
	folder := preflight.ModelDir(argv, env, dir)
	var content []byte
	for _, name := range []string{"config.json", "model.safetensors.index.json", "generation_config.json"} {
		text, _ := os.ReadFile(filepath.Join(folder, name))
		content = append(content, text...)
	}
	return model + " " + shortSum(string(content))
}

func shortSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
