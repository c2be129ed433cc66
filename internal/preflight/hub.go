package preflight

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hubModel is what the cache of the Hugging Face Hub holds of a model.
type hubModel struct {
	cache    string // the cache's folder
	snapshot string // the folder of the wanted revision; "" where there is none
	partial  bool   // a download was begun and not ended
}

// hub looks a model up in the cache, as huggingface_hub does.
func (l *look) hub(model string) hubModel {
	h := hubModel{cache: l.hubCache()}
	folder := filepath.Join(h.cache, "models--"+strings.ReplaceAll(model, "/", "--"))
	revision, ok := l.cmd.Value("--revision")
	if !ok {
		revision = "main"
	}
	if commit, err := os.ReadFile(filepath.Join(folder, "refs", revision)); err == nil {
		revision = strings.TrimSpace(string(commit))
	}
	snapshot := filepath.Join(folder, "snapshots", revision)
	if info, err := os.Stat(snapshot); err == nil && info.IsDir() {
		h.snapshot = snapshot
	}
	left, _ := filepath.Glob(filepath.Join(folder, "blobs", "*.incomplete"))
	h.partial = len(left) > 0
	return h
}

// hubCache is where huggingface_hub keeps what it downloads.
func (l *look) hubCache() string {
	for _, name := range []string{"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"} {
		if v := l.getenv(name); v != "" {
			return l.abs(v)
		}
	}
	if v := l.getenv("HF_HOME"); v != "" {
		return filepath.Join(l.abs(v), "hub")
	}
	return filepath.Join(l.userCache(), "huggingface", "hub")
}

// userCache is the folder that most libraries cache below.
func (l *look) userCache() string {
	if v := l.getenv("XDG_CACHE_HOME"); v != "" {
		return v
	}
	return filepath.Join(l.getenv("HOME"), ".cache")
}

// offline tells whether the Hub may not be asked.
func (l *look) offline() bool {
	return slices.ContainsFunc([]string{"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}, func(name string) bool {
		return slices.Contains([]string{"1", "ON", "YES", "TRUE"}, strings.ToUpper(l.getenv(name)))
	})
}

// cached looks at a model that is named as the Hub names it.
func (l *look) cached(model string, read func() weights) []Check {
	if l.getenv("SGLANG_USE_MODELSCOPE") != "" || strings.Count(model, "/") > 1 {
		return []Check{warn("", "the model %q is no path here, and where it comes from is not known", model)}
	}
	h := l.hub(model)
	switch {
	case h.snapshot == "" && l.offline():
		return []Check{fail("hf_network", "download it first, or unset HF_HUB_OFFLINE",
			"%q is not in %s, and the Hub may not be asked", model, h.cache)}
	case h.snapshot == "":
		return []Check{warn("download it beforehand to know how long a start takes",
			"%q is not in %s: it will be downloaded", model, h.cache)}
	}
	checks := l.contents(checkpoint{model, h.snapshot, !l.offline(), read})
	if h.partial {
		checks = append(checks, warn("a download is going on, or was cut off", "the cache holds unfinished files of %q", model))
	}
	return checks
}
