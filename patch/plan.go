package patch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/aymanbagabas/go-udiff"
)

// Plan is what Apply would do, with the hashes it takes as preconditions. It is
// a picture of one moment: Apply refuses where a file has changed since.
type Plan struct {
	Interpreter Interpreter `json:"interpreter"`
	Python      string      `json:"python"` // release of the interpreter
	Targets     []Target    `json:"targets"`

	prefix string // of the interpreter's environment
	files  []*content
}

// Refused lists the targets whose patch cannot be used. What follows is the
// patch's on_refused: Apply fails on abort and leaves the patch out on
// run-unpatched.
func (p *Plan) Refused() []Target {
	var refused []Target
	for _, t := range p.Targets {
		if t.Refused {
			refused = append(refused, t)
		}
	}
	return refused
}

// content is one file in the course of a plan: what it is, and what the patches
// that are not refused make of it together.
type content struct {
	place   place
	disk    *file
	base    []byte // without our own patches: what is on disk, or its original from the ledger
	working []byte
	held    *entry // ledger's record where the disk holds patched content of ours
	pycs    []string

	patches []string
	method  string
	keep    bool // revert = "never"
	module  string
}

// MakePlan looks at every file that the patches name, with the eyes of the
// interpreter. It writes nothing and imports nothing. The ledger may be nil for
// a look without history. An error means that no plan could be made; a patch
// that does not fit is not an error but a refused target.
func MakePlan(ctx context.Context, l *Ledger, in Interpreter, patches []Patch) (*Plan, error) {
	pl := &planner{ctx: ctx, in: in, failed: map[string]string{}}
	if err := pl.resolve(patches); err != nil {
		return nil, err
	}
	if l != nil {
		book, err := l.read()
		if err != nil {
			return nil, err
		}
		pl.book, pl.ledger = book, l
	}
	if err := pl.locate(); err != nil {
		return nil, err
	}
	// Whether a text compiles shows once the patches are put together; one that
	// does not is left out, and the rest put together again.
	for {
		if err := pl.compose(); err != nil {
			return nil, err
		}
		fresh, err := pl.compile()
		if err != nil {
			return nil, err
		}
		if !fresh {
			return pl.plan(), nil
		}
	}
}

// planner makes one plan.
type planner struct {
	ctx     context.Context
	in      Interpreter
	ledger  *Ledger
	book    *book
	patches []Patch
	forms   [][]form
	where   *whereabouts

	failed  map[string]string // patch -> why its result is not Python
	files   map[string]*content
	targets []Target
	steps   []step
}

// step is one change of one file by one patch, for the syntax check.
type step struct {
	patch         string
	path          string
	before, after []byte
}

func (pl *planner) resolve(patches []Patch) error {
	seen := map[string]bool{}
	for _, raw := range patches {
		p, err := raw.Resolved()
		if err != nil {
			return err
		}
		if seen[p.Name] {
			return fmt.Errorf("cannot use patch %q twice", p.Name)
		}
		seen[p.Name] = true
		forms, err := p.forms()
		if err != nil {
			return fmt.Errorf("cannot use patch %q: %w", p.Name, err)
		}
		pl.patches, pl.forms = append(pl.patches, p), append(pl.forms, forms)
	}
	return nil
}

func (pl *planner) locate() error {
	if len(pl.patches) == 0 {
		pl.where = &whereabouts{}
		return nil
	}
	var q question
	for _, forms := range pl.forms {
		q.collect(forms)
	}
	where, err := pl.in.locate(pl.ctx, q)
	pl.where = where
	return err
}

// load reads a file once a round. Content that we put there ourselves is seen
// through to its original.
func (pl *planner) load(p place) error {
	if pl.files[p.path] != nil {
		return nil
	}
	disk, err := readFile(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return &mismatch{reason: fmt.Sprintf("there is no file %s", p.path), absent: true}
	}
	if err != nil {
		return &mismatch{reason: fmt.Sprintf("cannot read it: %v", err)}
	}
	now := &content{place: p, disk: disk, base: disk.content}
	if held := pl.book.entry(p.path); held != nil && held.After == disk.sum {
		original, err := pl.ledger.original(held.Before)
		if err != nil {
			return &mismatch{reason: fmt.Sprintf("the file holds a patch of ours and its original cannot be read: %v", err)}
		}
		now.held, now.base = held, original
	}
	now.working = now.base
	if now.pycs, err = bytecode(p.path, cacheDirs(p.caches)); err != nil {
		return &mismatch{reason: fmt.Sprintf("cannot look for its bytecode: %v", err)}
	}
	pl.files[p.path] = now
	return nil
}

// compose goes through the patches in order and puts their changes together. A
// patch with a refused target adds nothing.
func (pl *planner) compose() error {
	pl.files, pl.targets, pl.steps = map[string]*content{}, nil, nil
	for i, p := range pl.patches {
		if err := pl.ctx.Err(); err != nil {
			return err
		}
		f, looks := pl.choose(p, pl.forms[i])
		targets := pl.describe(p, f, looks)
		if why := pl.failed[p.Name]; why != "" {
			refuseAll(targets, why, "")
		}
		pl.refuseTogether(targets)
		if !slices.ContainsFunc(targets, func(t Target) bool { return t.Refused }) {
			pl.commit(p, looks)
		}
		pl.targets = append(pl.targets, targets...)
	}
	return nil
}

func refuseAll(targets []Target, why, hint string) {
	for i := range targets {
		targets[i].Refused, targets[i].Reason, targets[i].Hint = true, why, hint
	}
}

// refuseTogether refuses the whole patch where one of its files is refused.
func (pl *planner) refuseTogether(targets []Target) {
	bad := slices.IndexFunc(targets, func(t Target) bool { return t.Refused })
	if bad < 0 {
		return
	}
	for i := range targets {
		if !targets[i].Refused {
			targets[i].Refused = true
			targets[i].Reason = fmt.Sprintf("the patch is refused for %s", targets[bad].Path)
		}
	}
}

// commit adds a patch's changes to the contents.
func (pl *planner) commit(p Patch, looks []look) {
	for _, l := range looks {
		now := pl.files[l.place.path]
		if l.finding.state != Pristine {
			continue
		}
		pl.steps = append(pl.steps, step{p.Name, l.place.path, now.working, l.finding.after})
		now.working = l.finding.after
		now.patches = append(now.patches, p.Name)
		now.method, now.keep, now.module = p.Method, p.Revert == RevertNever, l.module
	}
}

// compile asks the interpreter about every text before and after each step. It
// reports whether a patch was found out for the first time.
func (pl *planner) compile() (fresh bool, err error) {
	var texts []text
	for _, s := range pl.steps {
		texts = append(texts, text{s.path, s.before}, text{s.path, s.after})
	}
	messages, err := pl.in.compile(pl.ctx, texts)
	if err != nil {
		return false, err
	}
	for i, s := range pl.steps {
		before, after := messages[2*i], messages[2*i+1]
		switch {
		case before != "":
			pl.failed[s.patch] = fmt.Sprintf("Python %s cannot read even the unpatched file: %s", pl.where.Version, before)
		case after != "":
			pl.failed[s.patch] = "the patched file is not Python: " + after
		default:
			continue
		}
		return true, nil
	}
	return false, nil
}

// plan closes the work: only files that a patch changes remain.
func (pl *planner) plan() *Plan {
	p := &Plan{Interpreter: pl.in, Python: pl.where.Version, prefix: pl.where.Prefix, Targets: pl.targets}
	for _, now := range pl.files {
		if len(now.patches) > 0 {
			p.files = append(p.files, now)
		}
	}
	slices.SortFunc(p.files, func(a, b *content) int { return cmp.Compare(a.place.path, b.place.path) })
	for i := range p.Targets {
		t := &p.Targets[i]
		now := pl.files[t.Path]
		if now == nil || t.Refused {
			continue
		}
		t.After = Hash(now.working)
		if pl.contested(now) {
			t.Refused, t.Reason = true, fmt.Sprintf("the file holds another set of patches, for %s", now.held.holders(pl.book))
			t.Hint = "wait until that launch has ended, or use method = \"overlay\""
		}
	}
	return p
}

// contested tells whether the disk holds patched content of ours that is not
// what this plan would put there.
func (pl *planner) contested(now *content) bool {
	return now.held != nil && len(now.patches) > 0 && now.method == MethodFile && Hash(now.working) != now.disk.sum
}

func unified(name string, before, after []byte) string {
	return udiff.Unified("a/"+name, "b/"+name, string(before), string(after))
}
