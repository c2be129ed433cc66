package patch

import (
	"context"
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// whereabouts is what the server's interpreter says of the modules, files and
// distributions that the patches name.
type whereabouts struct {
	Executable    string                   `json:"executable"`
	Version       string                   `json:"version"`
	Prefix        string                   `json:"prefix"`
	Packages      map[string]packageSpec   `json:"packages"`
	Modules       map[string][]moduleFile  `json:"modules"`
	Caches        map[string][]string      `json:"caches"`
	Distributions map[string]*distribution `json:"distributions"`
}

type packageSpec struct {
	Found     bool     `json:"found"`
	Error     string   `json:"error"`
	Origin    string   `json:"origin"`
	Locations []string `json:"locations"`
	Namespace bool     `json:"namespace"`
	Loader    string   `json:"loader"`
}

type moduleFile struct {
	Path     string `json:"path"`
	Compiled bool   `json:"compiled"`
}

type distribution struct {
	Found     bool   `json:"found"`
	Version   string `json:"version"`
	Root      string `json:"root"`
	Record    string `json:"record"`
	DirectURL string `json:"direct_url"`
	Installer string `json:"installer"`

	hashes map[string]string // by path relative to Root, from RECORD
	sizes  map[string]int64
}

// question names what to locate. Each list is sorted and has no duplicates, so
// that the same patches ask the same.
type question struct {
	Path0         string   `json:"path0"`
	Packages      []string `json:"packages"`
	Modules       []string `json:"modules"`
	Files         []string `json:"files"`
	Distributions []string `json:"distributions"`
}

func (q *question) add(list *[]string, name string) {
	if name != "" && !slices.Contains(*list, name) {
		*list = append(*list, name)
		slices.Sort(*list)
	}
}

func (in Interpreter) locate(ctx context.Context, q question) (*whereabouts, error) {
	switch in.Path0 {
	case "":
		dir, err := filepath.Abs(in.Dir) // as -m has it; no Dir is ours
		if err != nil {
			return nil, err
		}
		q.Path0 = dir
	case "-":
	default:
		q.Path0 = in.Path0
	}
	for _, list := range []*[]string{&q.Packages, &q.Modules, &q.Files, &q.Distributions} {
		if *list == nil {
			*list = []string{} // null would not be a list to the script
		}
	}
	argument, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	var w whereabouts
	if err := in.ask(ctx, in.Flags, locateScript, string(argument), nil, &w); err != nil {
		return nil, err
	}
	for _, d := range w.Distributions {
		d.readRecord()
	}
	return &w, nil
}

// readRecord keeps the hashes of RECORD by absolute path. A line that is not of
// its form tells nothing and is passed over.
func (d *distribution) readRecord() {
	d.hashes, d.sizes = map[string]string{}, map[string]int64{}
	r := csv.NewReader(strings.NewReader(d.Record))
	r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = -1, true, true
	for {
		fields, err := r.Read()
		if err != nil {
			return
		}
		if len(fields) < 2 {
			continue
		}
		encoded, ok := strings.CutPrefix(fields[1], "sha256=")
		if !ok {
			continue
		}
		path := filepath.Clean(filepath.FromSlash(fields[0]))
		sum, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(encoded, "="))
		if err == nil {
			d.hashes[path] = hex.EncodeToString(sum)
		}
		if size, err := strconv.ParseInt(fields[len(fields)-1], 10, 64); err == nil {
			d.sizes[path] = size
		}
	}
}

// changed lists the sources, apart from some, whose size is not the released
// one. It is a look, not a proof: reading thousands of files would take too long.
func (d *distribution) changed(except func(path string) bool) []string {
	var all []string
	for rel, size := range d.sizes {
		path := filepath.Join(d.Root, rel)
		if filepath.Ext(rel) != ".py" || except(path) {
			continue
		}
		if info, err := os.Stat(path); err != nil || info.Size() != size {
			all = append(all, rel)
		}
	}
	slices.Sort(all)
	return all
}

// released is the hash that a file had when it was installed, "" where RECORD
// does not list it. Links on the way (lib64, a linked venv) do not matter.
func (d *distribution) released(path string) string {
	if d == nil || !d.Found {
		return ""
	}
	root, err := filepath.EvalSymlinks(d.Root)
	if err != nil {
		return ""
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(root, filepath.Join(dir, filepath.Base(path)))
	if err != nil {
		return ""
	}
	return d.hashes[rel]
}

// editable tells whether the distribution was installed from a source tree that
// is used in place.
func (d *distribution) editable() bool {
	var direct struct {
		Info struct {
			Editable bool `json:"editable"`
		} `json:"dir_info"`
	}
	return json.Unmarshal([]byte(d.DirectURL), &direct) == nil && direct.Info.Editable
}

// place is the file that a module or path means to the interpreter.
type place struct {
	path   string
	root   string // folder that must hold it: the package's; "" for a plain file
	lock   string // folder whose lock guards changes: site-packages, or the file's
	caches []string
}

// find resolves a module. It returns a *mismatch where the module cannot be
// patched as it is, absent where there is none.
func (w *whereabouts) find(module string) (place, error) {
	top, _, _ := strings.Cut(module, ".")
	spec := w.Packages[top]
	switch {
	case !spec.Found && spec.Error != "":
		return place{}, &mismatch{reason: fmt.Sprintf("cannot look for %s: %s", top, spec.Error), absent: true}
	case !spec.Found:
		return place{}, &mismatch{reason: fmt.Sprintf("%s is not installed for %s", top, w.Executable), absent: true}
	case spec.Namespace && len(spec.Locations) > 1:
		return place{}, &mismatch{reason: fmt.Sprintf("%s is spread over %s: which file runs depends on their order", top, strings.Join(spec.Locations, " and "))}
	case spec.Loader == "zipimporter":
		return place{}, &mismatch{reason: fmt.Sprintf("%s is inside an archive, %s", top, spec.Origin)}
	}
	files := w.Modules[module]
	if len(files) == 0 {
		return place{}, w.noModule(module, top, spec)
	}
	if files[0].Compiled { // they come in the order of the import system
		return place{}, &mismatch{reason: fmt.Sprintf("the compiled %s is what runs, not its source", files[0].Path)}
	}
	return w.placeOf(files[0].Path, spec)
}

func (w *whereabouts) noModule(module, top string, spec packageSpec) *mismatch {
	m := &mismatch{absent: true, reason: fmt.Sprintf("%s has no module %s", top, module)}
	if spec.Namespace {
		m.reason = fmt.Sprintf("%s is only the folder %s here and has no module %s", top, strings.Join(spec.Locations, ", "), module)
		m.hint = "a folder of that name in the working directory hides an installed package; start the server from elsewhere"
	}
	return m
}

func (w *whereabouts) placeOf(path string, spec packageSpec) (place, error) {
	p := place{path: path, caches: w.Caches[path]}
	if len(spec.Locations) == 0 {
		p.lock = filepath.Dir(path)
		return p, nil
	}
	p.root = spec.Locations[0]
	p.lock = filepath.Dir(p.root)
	realRoot, err := filepath.EvalSymlinks(p.root)
	if err != nil {
		return place{}, &mismatch{reason: fmt.Sprintf("cannot follow %q: %v", p.root, err)}
	}
	realDir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return place{}, &mismatch{reason: fmt.Sprintf("cannot follow %q: %v", path, err)}
	}
	if rel, err := filepath.Rel(realRoot, realDir); err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return place{}, &mismatch{reason: fmt.Sprintf("%s leads out of its package, to %s", path, realDir)}
	}
	return p, nil
}

// plain is a place given by path: nothing is known of its package.
func (w *whereabouts) plain(path string) place {
	return place{path: path, lock: filepath.Dir(path), caches: w.Caches[path]}
}
