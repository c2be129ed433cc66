package patch

import (
	"fmt"
	"slices"
	"strings"
)

// choose finds the form of a patch that is for the installed release. The
// content decides among those whose version fits; what the losers said serves
// only to explain a refusal.
func (pl *planner) choose(p Patch, forms []form) (form, []look) {
	var settled, told []int
	all := make([][]look, len(forms))
	var outside []string
	for i, f := range forms {
		ok, reason := f.match(pl.where.Distributions[f.pkg])
		if !ok {
			outside = append(outside, reason)
			continue
		}
		for _, a := range f.aims {
			all[i] = append(all[i], pl.see(a, f, p.AllowChanged))
		}
		told = append(told, i)
		if fits(all[i]) {
			settled = append(settled, i)
		}
	}
	switch {
	case len(settled) > 0:
		i := settled[0]
		if other := elsewhere(all, settled); other != "" {
			ambiguous(all[i], other)
		}
		return forms[i], all[i]
	case len(told) > 0:
		i := slices.MaxFunc(told, func(a, b int) int { return telling(all[a]) - telling(all[b]) })
		return forms[i], pl.explain(forms[i], all[i])
	}
	f := forms[0]
	return f, []look{{aim: f.aims[0], finding: finding{state: pl.uninstalled(f, Unsupported), reason: strings.Join(slices.Compact(outside), "; ")}}}
}

// fits tells whether a form is settled: every file fits, and all in one way.
func fits(looks []look) bool {
	for _, l := range looks {
		if !l.finding.fits {
			return false
		}
	}
	for i, l := range looks {
		if (l.finding.state == Pristine) != (looks[0].finding.state == Pristine) {
			half := fmt.Sprintf("the patch is only partly there: %s is %s, %s is %s",
				looks[0].place.path, looks[0].finding.state, l.place.path, l.finding.state)
			looks[i].finding = finding{state: Drifted, reason: half}
			return false
		}
	}
	return true
}

// elsewhere names a second file that a settled form means, where there is one.
// Two places that both look right mean that the patch does not know this code.
func elsewhere(all [][]look, settled []int) string {
	first := all[settled[0]]
	for _, i := range settled[1:] {
		for _, l := range all[i] {
			if !slices.ContainsFunc(first, func(f look) bool { return f.place.path == l.place.path }) {
				return l.place.path
			}
		}
	}
	return ""
}

func ambiguous(looks []look, other string) {
	for i, l := range looks {
		looks[i].finding = finding{state: Drifted, reason: fmt.Sprintf("the patch fits %s and %s: which is meant is not clear", l.place.path, other)}
	}
}

// telling ranks forms that do not fit by how much they explain: a file changed
// by somebody, a form for just this release, a file at all.
func telling(looks []look) int {
	rank := 0
	for _, l := range looks {
		score := 0
		switch {
		case l.finding.state == Drifted:
			score = 3
		case l.located:
			score = 2
		case l.named:
			score = 1
		}
		rank = max(rank, score)
	}
	return rank
}

// explain turns "no such module" into "not for this release" where the package
// is there and no form was written for just this release.
func (pl *planner) explain(f form, looks []look) []look {
	for i, l := range looks {
		if l.finding.state == Missing && !l.named {
			looks[i].finding.state = pl.uninstalled(f, Unsupported)
		}
	}
	return looks
}

// uninstalled is Missing where the package itself is not there.
func (pl *planner) uninstalled(f form, otherwise State) State {
	top, _, _ := strings.Cut(f.aims[0].module, ".")
	if top != "" && !pl.where.Packages[top].Found {
		return Missing
	}
	return otherwise
}

// describe makes the targets of a patch, one a file.
func (pl *planner) describe(p Patch, f form, looks []look) []Target {
	var targets []Target
	for _, l := range looks {
		t := Target{
			Patch: p.Name, Path: l.place.path, Module: l.module, Variant: f.number, Package: f.pkg,
			State: l.finding.state, Reason: l.finding.reason, Hint: l.finding.hint, Method: p.Method, OnRefused: p.OnRefused,
			Refused: !l.finding.fits,
		}
		if d := pl.where.Distributions[f.pkg]; d != nil && d.Found {
			t.Version = d.Version
		}
		if l.located {
			pl.detail(p, l, &t)
		}
		targets = append(targets, t)
	}
	return targets
}

// detail adds what is known of a file, and what stands in the way of a change.
func (pl *planner) detail(p Patch, l look, t *Target) {
	now := pl.files[l.place.path]
	t.Before, t.After = now.disk.sum, now.disk.sum
	t.File = now.disk.facts(l.place.path)
	t.Bytecode = bytecodeKind(now.pycs)
	t.Notes = pl.notes(now, t)
	if l.finding.state != Pristine {
		return
	}
	t.Diff = unified(l.place.short(), now.working, l.finding.after)
	if why, hint := pl.inTheWay(p, l, now); why != "" {
		t.Refused, t.Reason, t.Hint = true, why, hint
	} else if now.held != nil && p.Method == MethodFile {
		t.State, t.Reason = WasApplied, fmt.Sprintf("sglaunch put it there, for %s", now.held.holders(pl.book))
	}
}

func (pl *planner) inTheWay(p Patch, l look, now *content) (why, hint string) {
	if len(now.patches) > 0 {
		switch {
		case now.method != p.Method:
			return fmt.Sprintf("patch %q reaches the same file by method = %q", now.patches[0], now.method), "give both patches one method"
		case now.keep != (p.Revert == RevertNever):
			return fmt.Sprintf("patch %q on the same file has another revert", now.patches[0]), "give both patches one revert"
		}
	}
	if p.Method == MethodOverlay {
		return pl.overlayObstacle(l)
	}
	if now.held != nil {
		return "", "" // the whole set decides: see Apply
	}
	if !p.AllowChanged && l.finding.unlisted && uncommitted(pl.ctx, l.place.path) {
		return "the source tree has changes in it that are not committed", "commit them, or set allow_changed = true for this patch"
	}
	if why := obstacle(l.place.path, now.disk.inode); why != "" {
		return why, `method = "overlay" changes nothing on disk`
	}
	for _, pyc := range now.pycs {
		if why := obstacle(pyc, inode{UID: now.disk.UID, GID: now.disk.GID}); why != "" && pycKind(pyc) == "unchecked-hash" {
			return fmt.Sprintf("%s would hide the change and cannot be removed: %s", pyc, why), `method = "overlay" changes nothing on disk`
		}
	}
	return "", ""
}

// notes are worth knowing and no obstacle.
func (pl *planner) notes(now *content, t *Target) []string {
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if now.disk.links > 1 {
		note("%d links share the file, as uv and conda do with their caches; only this one changes", now.disk.links)
	}
	if now.disk.Link != "" {
		note("a link to %s; the link is replaced, what it leads to is not touched", now.disk.Link)
	}
	if d := pl.where.Distributions[t.Package]; d != nil && d.Found {
		if d.editable() {
			note("%s is an editable install: the file belongs to a source tree", t.Package)
		}
		if others := d.changed(pl.ours(now)); len(others) > 0 {
			note("%d other files of %s differ from its release, %s for one", len(others), t.Package, others[0])
		}
	}
	switch t.File.FS {
	case "overlay":
		note("an overlay file system: a fresh container has the original anyway")
	case "nfs":
		note("a network file system: launches on other machines are not seen")
	}
	return notes
}

// ours knows the files that differ because of us: the one looked at, and those
// that hold a patch.
func (pl *planner) ours(now *content) func(path string) bool {
	return func(path string) bool { return path == now.place.path || pl.book.entry(path) != nil }
}
