package patch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// EditsFrom writes the edits that turn one text into another: whole lines, each
// found exactly once inside the innermost class or def around it, with as many
// unchanged lines as that takes. Applied to before they give after.
func EditsFrom(before, after []byte) ([]Edit, error) {
	if bytes.Equal(before, after) {
		return nil, errors.New("cannot write an edit: nothing was changed")
	}
	s := readSource(before)
	regions := s.regions(udiff.Lines(string(before), string(after)))
	for {
		widened := false
		for i := range regions {
			widened = s.widen(&regions[i]) || widened
		}
		merged := merge(regions)
		if !widened && len(merged) == len(regions) {
			break
		}
		regions = merged
	}
	edits := make([]Edit, 0, len(regions))
	for _, r := range regions {
		if len(bytes.TrimSpace(before[r.start:r.end])) == 0 {
			return nil, errors.New("cannot write an edit: the file has no text to anchor it to")
		}
		edits = append(edits, Edit{Find: string(before[r.start:r.end]), Replace: r.result(before), Within: r.within})
	}
	made, err := applyEdits(before, edits)
	if err != nil {
		return nil, fmt.Errorf("cannot write an edit: %w", err)
	}
	if !bytes.Equal(made, after) {
		return nil, errors.New("cannot write an edit: the edits do not give the changed text")
	}
	return edits, nil
}

// region is a stretch of whole lines with the changes inside it.
type region struct {
	start, end int
	within     string
	spans      []span
}

func (s *source) regions(changes []udiff.Edit) []region {
	var all []region
	for _, c := range changes {
		r := region{start: s.lineStart(c.Start), end: c.End, spans: []span{{c.Start, c.End, c.New}}}
		if r.end > r.start {
			r.end = s.lineEnd(r.end - 1)
		}
		all = append(all, r)
	}
	return merge(all)
}

// result is the region's text with its changes made.
func (r region) result(text []byte) string {
	var out strings.Builder
	at := r.start
	for _, sp := range r.spans {
		out.Write(text[at:sp.start])
		out.WriteString(sp.replace)
		at = sp.end
	}
	out.Write(text[at:r.end])
	return out.String()
}

// merge joins regions that touch: two edits must not meet.
func merge(regions []region) []region {
	slices.SortStableFunc(regions, func(a, b region) int { return a.start - b.start })
	var all []region
	for _, r := range regions {
		last := len(all) - 1
		if last >= 0 && r.start <= all[last].end {
			all[last].end = max(all[last].end, r.end)
			all[last].spans = append(all[last].spans, r.spans...)
			continue
		}
		all = append(all, r)
	}
	return all
}

// widen takes lines in on both sides until the region's text is found once in
// its scope, and reports whether it took any.
func (s *source) widen(r *region) (widened bool) {
	for {
		scopeStart, scopeEnd := s.home(r)
		find := s.text[r.start:r.end]
		if len(bytes.TrimSpace(find)) > 0 && bytes.Count(s.text[scopeStart:scopeEnd], find) == 1 && !overlaps(s.text[scopeStart:scopeEnd], find) {
			return widened
		}
		if r.start == 0 && r.end == len(s.text) {
			return widened
		}
		widened = true
		if r.start > 0 {
			r.start = s.lineStart(r.start - 1)
		}
		if r.end < len(s.text) {
			r.end = s.lineEnd(r.end)
		}
	}
}

// overlaps tells whether a text is found again inside its own occurrence.
func overlaps(text, find []byte) bool {
	first := bytes.Index(text, find)
	return first >= 0 && bytes.Contains(text[first+1:], find)
}

// home names the innermost scope that holds a region and that a name reaches
// without doubt.
func (s *source) home(r *region) (start, end int) {
	for i, sc := range slices.Backward(s.scopes) {
		if sc.start > r.start || r.end > sc.end || sc.start == r.start && r.start == r.end {
			continue
		}
		if start, end, err := s.within(s.path(i)); err == nil && start == sc.start {
			r.within = s.path(i)
			return start, end
		}
	}
	r.within = ""
	return 0, len(s.text)
}

func (s *source) lineStart(at int) int { return bytes.LastIndexByte(s.text[:at], '\n') + 1 }

func (s *source) lineEnd(at int) int {
	if i := bytes.IndexByte(s.text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(s.text)
}

// Located is an installed module.
type Located struct {
	Path    string
	Package string // distribution
	Version string
	Content []byte
	Release bool // the content is the one that was installed
}

// Locate finds a module with the eyes of the interpreter, without importing it.
func Locate(ctx context.Context, in Interpreter, module string) (Located, error) {
	if !moduleForm.MatchString(module) {
		return Located{}, fmt.Errorf("cannot locate %q: it is not a dotted module name", module)
	}
	top, _, _ := strings.Cut(module, ".")
	where, err := in.locate(ctx, question{Packages: []string{top}, Modules: []string{module}, Distributions: []string{top}})
	if err != nil {
		return Located{}, err
	}
	p, err := where.find(module)
	if err != nil {
		return Located{}, fmt.Errorf("cannot locate %s: %w", module, err)
	}
	content, err := readBounded(p.path)
	if err != nil {
		return Located{}, err
	}
	found := Located{Path: p.path, Content: content}
	if d := where.Distributions[top]; d.Found {
		found.Package, found.Version = top, d.Version
		found.Release = d.released(p.path) == Hash(content)
	}
	return found, nil
}
