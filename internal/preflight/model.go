package preflight

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sglaunch/internal/plain"
)

// checkModel looks for the model on disk, or in the Hub's cache.
func checkModel(_ context.Context, l *look) []Check {
	if l.server.Model == "" {
		return []Check{warn("", "the command does not tell which model it serves")}
	}
	return l.checkpoint(l.server.Model, l.weights)
}

// checkDraft does the same for the draft model of speculative decoding, which
// is loaded last: a missing one ends the launch after the whole load.
func checkDraft(_ context.Context, l *look) []Check {
	if l.server.Draft == "" || l.server.Draft == l.server.Model {
		return nil
	}
	dir := l.modelDir(l.server.Draft)
	return l.checkpoint(l.server.Draft, func() weights { return readWeights(dir) })
}

// checkAdapters looks for the LoRA adapters that are given by path.
func checkAdapters(_ context.Context, l *look) []Check {
	var checks []Check
	for _, word := range l.cmd.Values("--lora-paths") {
		path := word
		if _, after, ok := strings.Cut(word, "="); ok {
			path = after
		}
		if !isPath(path) {
			continue
		}
		if _, err := os.Stat(filepath.Join(l.abs(path), "adapter_config.json")); err != nil {
			checks = append(checks, fail("model_path_missing", "check the path of the adapter",
				"the adapter %q has no adapter_config.json: %v", word, plain.Error(err)))
		}
	}
	return checks
}

// isPath tells whether a model is named by a path that only the file system
// can resolve, not by a name of the Hub.
func isPath(model string) bool {
	return strings.HasPrefix(model, "/") || strings.HasPrefix(model, "./") || strings.HasPrefix(model, "../")
}

// modelDir is where a model lies on disk: its own path, or its snapshot in the
// Hub's cache; "" where it is neither.
func (l *look) modelDir(model string) string {
	if model == "" {
		return ""
	}
	if _, err := os.Stat(l.abs(model)); err == nil {
		return l.abs(model)
	}
	return l.hub(model).snapshot
}

// checkpoint is a model on disk.
type checkpoint struct {
	model    string // as the command names it
	dir      string
	download bool // what is missing comes from the Hub
	read     func() weights
}

// absent says that a file is missing: fatal, where nothing will bring it.
func (c checkpoint) absent(cause, advice, format string, args ...any) Check {
	if c.download {
		return warn("the server will try to download it", format, args...)
	}
	return fail(cause, advice, format, args...)
}

// checkpoint looks at one model.
func (l *look) checkpoint(model string, read func() weights) []Check {
	_, err := os.Stat(l.abs(model))
	switch {
	case strings.Contains(model, "://"):
		return []Check{fine("%s is loaded from afar; nothing here to look at", model)}
	case err == nil:
		return l.contents(checkpoint{model: model, dir: l.abs(model), read: read})
	case errors.Is(err, fs.ErrPermission):
		return []Check{fail("permission_denied", "give this user access to it", "the model %q may not be read", model)}
	case isPath(model):
		return []Check{fail("model_path_missing", "check the path, and that its file system is mounted",
			"the model path %q does not exist", model)}
	}
	return l.cached(model, read)
}

// layouts are the files of which one describes a model.
var layouts = []string{"config.json", "params.json", "model_index.json"}

// tokenizers are the files of which one holds the tokenizer.
var tokenizers = []string{"tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "tiktoken.model", "tekken.json"}

// contents looks at a model's folder.
func (l *look) contents(c checkpoint) []Check {
	info, err := os.Stat(c.dir)
	if err == nil && !info.IsDir() {
		return []Check{fine("the model is one file, %s (%s)", c.model, size(uint64(info.Size())))}
	}
	if !hasAny(c.dir, layouts) {
		return []Check{c.absent("model_path_missing", "check the path; a download may have ended early",
			"%q holds no config.json", c.model)}
	}
	var checks []Check
	if !hasAny(c.dir, tokenizers) && !l.cmd.Has("--skip-tokenizer-init") && !l.given("--tokenizer-path", "--tokenizer") {
		checks = append(checks, warn("set --tokenizer-path where it lies elsewhere", "%q holds no tokenizer", c.model))
	}
	if l.cmd.Has("--delete-ckpt-after-loading") {
		checks = append(checks, warn("without its files, no relaunch is possible",
			"--delete-ckpt-after-loading deletes %q once the server is ready", c.model))
	}
	if format, ok := l.cmd.Value("--load-format"); ok && !slices.Contains([]string{"auto", "safetensors", "pt"}, format) {
		return append(checks, fine("the weights are loaded as %q; not looked at", format))
	}
	return append(checks, c.weights())
}

// weights says what is wrong with the weights.
func (c checkpoint) weights() Check {
	w := c.read()
	switch {
	case w.err != nil:
		return fail("permission_denied", "give this user access to it", "the weights of %q cannot be read: %v", c.model, plain.Error(w.err))
	case len(w.broken) > 0:
		return fail("corrupt_weights", "delete them and download them again", "%q has %d weight files that cannot be loaded; %s is %s",
			c.model, len(w.broken), w.broken[0].name, w.broken[0].why)
	case len(w.refused) > 0:
		return fail("permission_denied", "give this user access to them", "%q has weight files that may not be read: %s", c.model, list(w.refused))
	case len(w.missing) > 0:
		return c.absent("corrupt_weights", "download the rest of it", "%q lacks %d weight files: %s", c.model, len(w.missing), list(w.missing))
	case w.files == 0:
		return c.absent("model_path_missing", "check the path; a download may have ended early", "%q holds no weights", c.model)
	}
	return fine("%s, %s in %d files", c.model, size(w.bytes), w.files)
}

func (l *look) given(names ...string) bool {
	_, ok := l.cmd.Value(names...)
	return ok
}

func hasAny(dir string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

// list writes names for people, at most three.
func list(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
