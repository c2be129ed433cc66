package patch

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	pep440 "github.com/aquasecurity/go-pep440-version"

	"sglaunch/internal/trust"
)

// aim is one file that a variant wants to change.
type aim struct {
	module, file string
	candidate
}

// form is a variant with its aims: what a patch is for the releases it names.
type form struct {
	number  int    // of the variant, from 1; 0 for a patch without variants
	pkg     string // distribution
	version string // PEP 440 range, "" = any
	aims    []aim
}

// forms reads a resolved patch, and the diffs it names.
func (p Patch) forms() ([]form, error) {
	variants := p.Variants
	if len(variants) == 0 {
		variants = []Variant{{Module: p.Module, File: p.File, Edits: p.Edits, Diff: p.Diff}}
	}
	var all []form
	for i, v := range variants {
		f := form{pkg: v.Package, version: v.Version}
		if len(p.Variants) > 0 {
			f.number = i + 1
		}
		aims, err := v.aims(p)
		if err != nil {
			return nil, err
		}
		for j := range aims {
			aims[j].named = f.number == 0 || v.Version != ""
		}
		f.aims = aims
		if f.pkg == "" {
			f.pkg, _, _ = strings.Cut(aims[0].module, ".")
		}
		all = append(all, f)
	}
	return all, nil
}

func (v Variant) aims(p Patch) ([]aim, error) {
	module, file := v.target(p)
	shape := candidate{present: v.Present, before: v.SHA256Before, after: v.SHA256After}
	if v.Diff == "" {
		shape.change.edits = v.Edits
		return []aim{{module, file, shape}}, nil
	}
	diffs, err := readDiff(v.Diff)
	if err != nil {
		return nil, err
	}
	if len(diffs) > 1 && (module != "" || file != "" || len(v.SHA256Before) > 0 || v.SHA256After != "" || len(v.Present) > 0) {
		return nil, fmt.Errorf("cannot use %q for one file: it changes %d", v.Diff, len(diffs))
	}
	var aims []aim
	for _, d := range diffs {
		a := aim{module, file, shape}
		a.change.diff = &d
		if module == "" && file == "" {
			if a.module, err = moduleOf(d.name); err != nil {
				return nil, err
			}
		}
		aims = append(aims, a)
	}
	return aims, nil
}

// readDiff reads a diff file. Who may change it decides what code runs, so the
// same care is taken as for launch.toml.
func readDiff(path string) ([]fileDiff, error) {
	text, err := trust.Read(path, maxText)
	if err != nil {
		return nil, err
	}
	diffs, err := parseDiff(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return diffs, nil
}

// moduleOf turns a diff's path into the module that it means. Source trees keep
// their packages in python/ or src/.
func moduleOf(name string) (string, error) {
	rest := strings.TrimPrefix(strings.TrimPrefix(name, "python/"), "src/")
	rest, isPython := strings.CutSuffix(rest, ".py")
	rest = strings.TrimSuffix(rest, "/__init__")
	module := strings.ReplaceAll(rest, "/", ".")
	if !isPython || !moduleForm.MatchString(module) {
		return "", fmt.Errorf("cannot tell which module %q is: give module or file beside diff", name)
	}
	return module, nil
}

// collect takes in what the forms need to know from the interpreter.
func (q *question) collect(forms []form) {
	for _, f := range forms {
		q.add(&q.Distributions, f.pkg)
		for _, a := range f.aims {
			top, _, _ := strings.Cut(a.module, ".")
			q.add(&q.Packages, top)
			q.add(&q.Modules, a.module)
			q.add(&q.Files, a.file)
		}
	}
}

// match tells whether the form is for the installed release; else why not.
func (f form) match(d *distribution) (ok bool, reason string) {
	if f.version == "" {
		return true, ""
	}
	if d == nil || !d.Found || d.Version == "" {
		return false, fmt.Sprintf("the release of %s is not known", f.pkg)
	}
	installed, err := pep440.Parse(d.Version)
	if err != nil {
		return false, fmt.Sprintf("%s %q is not a PEP 440 version", f.pkg, d.Version)
	}
	// A build such as 0.5.8.dev3 or 0.5.8rc1 counts like any other number.
	wanted, err := pep440.NewSpecifiers(f.version, pep440.WithPreRelease(true))
	if err != nil {
		return false, fmt.Sprintf("version = %q cannot be read: %v", f.version, err)
	}
	if !wanted.Check(installed) {
		return false, fmt.Sprintf("%s %s is not in %s", f.pkg, d.Version, f.version)
	}
	return true, ""
}

// look is one aim as found on this machine.
type look struct {
	aim
	place   place
	finding finding
	located bool
}

// see resolves an aim and judges its file.
func (pl *planner) see(a aim, f form, allowChanged bool) look {
	l := look{aim: a}
	var err error
	if a.module != "" {
		l.place, err = pl.where.find(a.module)
	} else {
		l.place = pl.where.plain(a.file)
	}
	if err == nil {
		err = pl.load(l.place)
	}
	if err != nil {
		l.finding = missing(err)
		l.place.path = cmp.Or(l.place.path, a.file)
		return l
	}
	l.located = true
	now := pl.files[l.place.path]
	l.finding = a.judge(now.base, now.working, pl.originOf(now, f, allowChanged))
	return l
}

// missing is the finding for a module or file that is not there, or that cannot
// be patched whatever it holds.
func missing(err error) finding {
	f := finding{state: Missing, reason: err.Error()}
	var m *mismatch
	if errors.As(err, &m) {
		f.hint = m.hint
		if !m.absent {
			f.state = Unsupported
		}
	}
	return f
}

func (pl *planner) originOf(now *content, f form, allowChanged bool) origin {
	return origin{release: pl.where.Distributions[f.pkg].released(now.place.path), changed: allowChanged}
}

// short is a path as a diff shows it: from the folder that holds the package.
func (p place) short() string {
	if p.root == "" {
		return p.path
	}
	rel, err := filepath.Rel(filepath.Dir(p.root), p.path)
	if err != nil {
		return p.path
	}
	return filepath.ToSlash(rel)
}
