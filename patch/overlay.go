package patch

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An overlay leaves the installed files alone: patched copies lie in the ledger,
// and a sitecustomize on PYTHONPATH imports them in place of the originals. The
// environment takes it to every child. It is for trees that cannot or must not
// be written, and for launches with different patches on one environment.

//go:embed python/overlay.py
var overlayScript string

// overlaid is what overlay.py needs to know of one module.
type overlaid struct {
	Source string   `json:"source"`
	Copy   string   `json:"copy"`   // relative to the overlay's folder
	SHA256 []string `json:"sha256"` // contents of the source for which the copy is good
}

// overlayObstacle says why an overlay cannot work for this file.
func (pl *planner) overlayObstacle(l look) (why, hint string) {
	if l.module == "" {
		return "an overlay replaces modules, and the patch names a file", "give module in place of file"
	}
	for _, f := range pl.in.Flags {
		if !strings.HasPrefix(f, "--") && !strings.HasPrefix(f, "-X") && !strings.HasPrefix(f, "-W") && strings.ContainsAny(f, "IES") {
			return fmt.Sprintf("the command starts Python with %s, which leaves overlays out", f), `method = "file" works with it`
		}
	}
	return "", ""
}

// prepareOverlay makes the folder of a launch, complete and durable, before any
// record speaks of it. The name is empty where the plan has no overlay.
func (s *session) prepareOverlay(p *Plan, owner Owner, applied *Applied) (name string, copied []string, err error) {
	modules := map[string]overlaid{}
	copies := map[string][]byte{}
	for i, c := range p.files {
		if c.method != MethodOverlay {
			continue
		}
		now, err := readFile(c.place.path)
		if err != nil || now.sum != c.disk.sum {
			return "", nil, fmt.Errorf("cannot make an overlay of %s: %w", c.place.path, ErrChanged)
		}
		file := fmt.Sprintf("%d-%s", i, filepath.Base(c.place.path))
		copies[file] = c.working
		copied = append(copied, c.place.path)
		good := []string{c.disk.sum, Hash(c.base)}
		slices.Sort(good)
		modules[c.module] = overlaid{c.place.path, file, slices.Compact(good)}
		applied.Files = append(applied.Files, c.place.path)
	}
	if len(modules) == 0 {
		return "", nil, nil
	}
	table, err := json.MarshalIndent(modules, "", "  ")
	if err != nil {
		return "", nil, err
	}
	copies["overlay.json"], copies["sitecustomize.py"] = table, []byte(overlayScript)
	name = Hash(fmt.Append(nil, owner, s.now().UnixNano()))[:16]
	if err := s.fillOverlay(s.path(overlaysName, name), copies); err != nil {
		return "", nil, fmt.Errorf("cannot make the overlay: %w", err)
	}
	applied.Env = p.Interpreter.overlayEnv(s.path(overlaysName, name))
	return name, copied, nil
}

func (s *session) fillOverlay(dir string, files map[string][]byte) error {
	if err := s.disk.Mkdir(dir); err != nil {
		return err
	}
	node := inode{Mode: 0o600, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), ModTime: s.now().UnixNano()}
	for name, content := range files {
		if err := write(s.disk, filepath.Join(dir, name), content, node); err != nil {
			return err
		}
	}
	return s.disk.Sync(dir)
}

// overlayEnv puts the folder before what PYTHONPATH already says.
func (in Interpreter) overlayEnv(dir string) []string {
	value := dir
	if rest, ok := getenv(in.environment(), "PYTHONPATH"); ok && rest != "" {
		value += ":" + rest
	}
	return []string{"PYTHONPATH=" + value}
}

const overlayProbe = `import json, sys
found = sorted(m for f in sys.meta_path for m in getattr(f, "sglaunch_overlay", ()))
sys.stdout.write("\n\x1e" + json.dumps(found) + "\n")`

// verifyOverlay asks the interpreter, started as the server will be, whether the
// overlay is in its import system.
func (s *session) verifyOverlay(p *Plan, applied *Applied) error {
	if len(applied.Env) == 0 {
		return nil
	}
	in := p.Interpreter
	in.Env = append(slices.Clone(in.environment()), applied.Env...)
	var found []string
	if err := in.ask(s.ctx, in.Flags, overlayProbe, "", nil, &found); err != nil {
		return err
	}
	for _, c := range p.files {
		if c.method == MethodOverlay && !slices.Contains(found, c.module) {
			return fmt.Errorf("the overlay of %s does not reach the interpreter", c.module)
		}
	}
	return nil
}
