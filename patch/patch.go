package patch

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	pep440 "github.com/aquasecurity/go-pep440-version"
)

// How a patch reaches the interpreter.
const (
	MethodFile    = "file"    // a new file is renamed over the installed one
	MethodOverlay = "overlay" // a copy is imported in its place; nothing on disk changes
)

// When a patch is undone.
const (
	RevertOnExit = "on-exit" // once the launch's process tree is gone
	RevertNever  = "never"   // not by a launch; only when a person asks
)

// What to do where the plan refuses a patch.
const (
	RefusedAbort     = "abort"
	RefusedUnpatched = "run-unpatched"
)

// What to do where the output does not prove a patch.
const (
	UnprovenWarn     = "warn"
	UnprovenRelaunch = "relaunch"
	UnprovenFail     = "fail"
)

// Which ranks have to prove it.
const (
	RanksAll = "all"
	RanksAny = "any"
)

// Far above any patch, far below harm.
const (
	maxText  = 1 << 20 // bytes of a diff, of a text to find or to put there
	maxEdits = 1000
)

// Patch is one [[patch]] of launch.toml. It either uses a shipped one or says
// itself what changes: by edits or a diff, for one module or file, or by
// variants for releases in which the code moved. The zero value of each policy
// means its default.
type Patch struct {
	Use  string `toml:"use" json:"use,omitempty"`   // name of a shipped patch
	Name string `toml:"name" json:"name,omitempty"` // of one's own; names state, journal and reports

	Module string `toml:"module" json:"module,omitempty"` // dotted, resolved by the server's interpreter
	File   string `toml:"file" json:"file,omitempty"`     // or an absolute path
	Edits  []Edit `toml:"edit" json:"edit,omitempty"`
	Diff   string `toml:"diff" json:"diff,omitempty"` // path of a unified diff

	Variants []Variant     `toml:"variant" json:"variant,omitempty"`
	Requires []Requirement `toml:"requires" json:"requires,omitempty"`
	Proof    Proof         `toml:"proof" json:"proof,omitzero"`

	Method       string `toml:"method" json:"method,omitempty"`
	Revert       string `toml:"revert" json:"revert,omitempty"`
	OnRefused    string `toml:"on_refused" json:"on_refused,omitempty"`
	OnUnproven   string `toml:"on_unproven" json:"on_unproven,omitempty"`
	AllowChanged bool   `toml:"allow_changed" json:"allow_changed,omitempty"` // also patch a file that differs from its release
}

// Edit replaces exact text. It fits only where Find occurs exactly Count times
// inside the named scope; there is no fuzz and no offset.
type Edit struct {
	Find    string `toml:"find" json:"find"`
	Replace string `toml:"replace" json:"replace"`
	Within  string `toml:"within" json:"within,omitempty"` // "def name", "class A", "class A / def name"; "" = the whole file
	Count   int    `toml:"count" json:"count,omitempty"`   // 0 = 1
}

// Variant is the form of a patch for some releases. Where several fit by
// version, their content decides.
type Variant struct {
	Package string `toml:"package" json:"package,omitempty"` // distribution whose version counts; "" = the module's first name
	Version string `toml:"version" json:"version,omitempty"` // PEP 440, ">=0.5.7,<0.5.13"; "" = by content alone

	Module string `toml:"module" json:"module,omitempty"` // "" = the patch's own
	File   string `toml:"file" json:"file,omitempty"`
	Edits  []Edit `toml:"edit" json:"edit,omitempty"`
	Diff   string `toml:"diff" json:"diff,omitempty"`

	// Present is code (comments and strings do not count) that stands in the
	// file once the change is there, by us or by upstream.
	Present []Anchor `toml:"present" json:"present,omitempty"`

	SHA256Before []string `toml:"sha256_before" json:"sha256_before,omitempty"`
	SHA256After  string   `toml:"sha256_after" json:"sha256_after,omitempty"`
}

// Anchor is text looked for in a scope, in code only.
type Anchor struct {
	Find   string `toml:"find" json:"find"`
	Within string `toml:"within" json:"within,omitempty"`
}

// Requirement is a setting of the server without which the patch changes
// nothing. It never stops a launch; it tells before it that the patch cannot
// have an effect.
type Requirement struct {
	Flag   string   `toml:"flag" json:"flag"`               // "--moe-runner-backend"
	Is     []string `toml:"is" json:"is,omitempty"`         // given with one of these values
	Absent bool     `toml:"absent" json:"absent,omitempty"` // or not given at all
	Why    string   `toml:"why" json:"why,omitempty"`
}

// Proof says what the output shows if the patch took effect: a phase that only
// happens with it, or a line matching Marker, seen before the phase Before.
type Proof struct {
	Phase  string `toml:"phase" json:"phase,omitempty"`
	Ranks  string `toml:"ranks" json:"ranks,omitempty"` // all | any; "" = all
	Marker string `toml:"marker" json:"marker,omitempty"`
	Before string `toml:"before" json:"before,omitempty"`
}

// Label is what to call the patch in a message.
func (p Patch) Label() string {
	if p.Name != "" {
		return p.Name
	}
	return p.Use
}

// Resolved returns the patch with a shipped one's content filled in and every
// default explicit. The policies of the caller win over the shipped ones.
func (p Patch) Resolved() (Patch, error) {
	if err := p.Validate(); err != nil {
		return Patch{}, err
	}
	if p.Use != "" {
		shipped, _ := Shipped(p.Use) // Validate has looked
		for _, pair := range []struct{ to, from *string }{
			{&shipped.Method, &p.Method}, {&shipped.Revert, &p.Revert},
			{&shipped.OnRefused, &p.OnRefused}, {&shipped.OnUnproven, &p.OnUnproven},
		} {
			if *pair.from != "" {
				*pair.to = *pair.from
			}
		}
		if p.Proof != (Proof{}) {
			shipped.Proof = p.Proof
		}
		shipped.AllowChanged = shipped.AllowChanged || p.AllowChanged
		shipped.Use = p.Use
		p = shipped
	}
	for _, d := range []struct {
		field *string
		value string
	}{
		{&p.Method, MethodFile}, {&p.Revert, RevertOnExit},
		{&p.OnRefused, RefusedAbort}, {&p.OnUnproven, UnprovenWarn}, {&p.Proof.Ranks, RanksAll},
	} {
		if *d.field == "" {
			*d.field = d.value
		}
	}
	return p, nil
}

// Validate reports the first thing in the patch that cannot be meant. Its
// errors name the key as launch.toml spells it.
func (p Patch) Validate() error {
	check := p.validateOwn
	if p.Use != "" {
		check = p.validateUse
	}
	if err := check(); err != nil {
		return fmt.Errorf("cannot use patch %q: %w", p.Label(), err)
	}
	return nil
}

func (p Patch) validateUse() error {
	if _, ok := Shipped(p.Use); !ok {
		return fmt.Errorf("use = %q is not shipped; known are %q", p.Use, ShippedNames())
	}
	if p.Name != "" || p.Module != "" || p.File != "" || p.Diff != "" || len(p.Edits)+len(p.Variants)+len(p.Requires) > 0 {
		return fmt.Errorf("use = %q brings its own content: give either use, or name with edit, diff or variant", p.Use)
	}
	return p.validatePolicy()
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func (p Patch) validateOwn() error {
	if !nameForm.MatchString(p.Name) {
		return fmt.Errorf("name = %q must be 1 to 64 of letters, digits, dot, dash and underscore", p.Name)
	}
	if len(p.Variants) == 0 {
		if err := validateChange(p.Module, p.File, p.Diff, p.Edits); err != nil {
			return err
		}
	} else if len(p.Edits) > 0 || p.Diff != "" {
		return errors.New("edit or diff beside variant: move it into a variant of its own")
	}
	for i, v := range p.Variants {
		if err := v.validate(p); err != nil {
			return fmt.Errorf("variant %d: %w", i+1, err)
		}
	}
	for i, r := range p.Requires {
		if !strings.HasPrefix(r.Flag, "-") || len(r.Is) == 0 && !r.Absent {
			return fmt.Errorf("requires %d: needs flag = \"--name\" and is = [...] or absent = true", i+1)
		}
	}
	return p.validatePolicy()
}

func (v Variant) validate(p Patch) error {
	if v.Module != "" && v.File != "" {
		return errors.New("both module and file are given: keep one")
	}
	module, file := v.target(p)
	if err := validateChange(module, file, v.Diff, v.Edits); err != nil {
		return err
	}
	if v.Version != "" {
		if _, err := pep440.NewSpecifiers(v.Version); err != nil {
			return fmt.Errorf("version = %q is not a PEP 440 range such as \">=0.5.7,<0.5.13\"", v.Version)
		}
	}
	for _, a := range v.Present {
		if strings.TrimSpace(a.Find) == "" {
			return errors.New("present: find is empty")
		}
		if _, err := parseScope(a.Within); err != nil {
			return err
		}
	}
	for _, sum := range append(slices.Clone(v.SHA256Before), v.SHA256After) {
		if sum != "" && !hashForm.MatchString(sum) {
			return fmt.Errorf("%q is not a SHA-256 in 64 lower-case hex digits", sum)
		}
	}
	return nil
}

var hashForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// target is the module or file that a variant changes: its own or the patch's.
func (v Variant) target(p Patch) (module, file string) {
	if v.Module != "" || v.File != "" {
		return v.Module, v.File
	}
	return p.Module, p.File
}

var moduleForm = regexp.MustCompile(`^[\pL_][\pL\pN_]*(\.[\pL_][\pL\pN_]*)*$`)

func validateChange(module, file, diff string, edits []Edit) error {
	switch {
	case module != "" && file != "":
		return errors.New("both module and file are given: keep one")
	case module != "" && !moduleForm.MatchString(module):
		return fmt.Errorf("module = %q is not a dotted module name", module)
	case file != "" && !strings.HasPrefix(file, "/"):
		return fmt.Errorf("file = %q must be an absolute path", file)
	case len(edits) > 0 && diff != "":
		return errors.New("both edit and diff are given: keep one")
	case len(edits) == 0 && diff == "":
		return fmt.Errorf("nothing to change: give edit = [{find, replace}] or diff = \"my.patch\"")
	case len(edits) > 0 && module == "" && file == "":
		return fmt.Errorf("edit needs module = \"package.module\" or file = \"/path.py\"")
	case len(edits) > maxEdits:
		return fmt.Errorf("%d edits are more than %d", len(edits), maxEdits)
	}
	for i, e := range edits {
		if err := e.validate(); err != nil {
			return fmt.Errorf("edit %d: %w", i+1, err)
		}
	}
	return nil
}

func (e Edit) validate() error {
	switch {
	case strings.TrimSpace(e.Find) == "":
		return errors.New("find is empty: name the exact text to replace")
	case e.Find == e.Replace:
		return errors.New("find and replace are the same")
	case e.Count < 0:
		return fmt.Errorf("count = %d must be 1 or more", e.Count)
	case len(e.Find) > maxText || len(e.Replace) > maxText:
		return fmt.Errorf("find or replace is longer than %d bytes", maxText)
	case strings.ContainsRune(e.Find+e.Replace, 0):
		return errors.New("find or replace holds a NUL byte, which no Python source may")
	}
	_, err := parseScope(e.Within)
	return err
}

// times is how often Find must occur.
func (e Edit) times() int {
	return max(e.Count, 1)
}

func (p Patch) validatePolicy() error {
	for _, c := range []struct {
		key, value string
		known      []string
	}{
		{"method", p.Method, []string{MethodFile, MethodOverlay}},
		{"revert", p.Revert, []string{RevertOnExit, RevertNever}},
		{"on_refused", p.OnRefused, []string{RefusedAbort, RefusedUnpatched}},
		{"on_unproven", p.OnUnproven, []string{UnprovenWarn, UnprovenRelaunch, UnprovenFail}},
		{"proof.ranks", p.Proof.Ranks, []string{RanksAll, RanksAny}},
	} {
		if c.value != "" && !slices.Contains(c.known, c.value) {
			return fmt.Errorf("%s = %q is not one of %q", c.key, c.value, c.known)
		}
	}
	if p.Proof.Phase != "" && p.Proof.Marker != "" {
		return errors.New("proof: give phase or marker, not both")
	}
	if _, err := regexp.Compile(p.Proof.Marker); err != nil {
		return fmt.Errorf("proof.marker = %q is not a regular expression: %v", p.Proof.Marker, err)
	}
	return nil
}
