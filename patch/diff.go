package patch

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// fileDiff is what a unified diff does to one file.
type fileDiff struct {
	name string // as written after the +++, without a/ or b/
	file *gitdiff.File
}

// parseDiff reads a unified diff that changes text in existing files and does
// nothing else. Whatever it cannot account for, line for line, it refuses: a
// hunk whose header counts fewer lines than follow would be cut short silently.
func parseDiff(text []byte) ([]fileDiff, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("cannot read a diff of %d bytes: the limit is %d", len(text), maxText)
	}
	if err := checkHunks(text); err != nil {
		return nil, err
	}
	files, _, err := gitdiff.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("cannot read the diff: %w", err)
	}
	var diffs []fileDiff
	for _, f := range files {
		if err := onlyText(f); err != nil {
			return nil, err
		}
		name, err := diffName(f)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(diffs, func(d fileDiff) bool { return d.name == name }) {
			return nil, fmt.Errorf("cannot use the diff: it changes %q twice", name)
		}
		diffs = append(diffs, fileDiff{name, f})
	}
	if len(diffs) == 0 {
		return nil, errors.New("cannot use the diff: it has no hunk (@@ -a,b +c,d @@)")
	}
	return diffs, nil
}

func onlyText(f *gitdiff.File) error {
	what := ""
	switch {
	case f.IsNew:
		what = "creates"
	case f.IsDelete:
		what = "deletes"
	case f.IsRename, f.IsCopy:
		what = "renames or copies"
	case f.IsBinary:
		what = "changes the binary"
	case f.NewMode != 0 && f.OldMode != f.NewMode:
		what = "changes the mode of"
	case len(f.TextFragments) == 0:
		what = "changes nothing in"
	default:
		return nil
	}
	return fmt.Errorf("cannot use the diff: it %s %q; only the text of existing files may change", what, cmp.Or(f.NewName, f.OldName))
}

// diffName is the path that a diff speaks of, slash-separated and relative.
func diffName(f *gitdiff.File) (string, error) {
	name := f.NewName
	if stripped, ok := strings.CutPrefix(name, "b/"); ok {
		name = stripped
	}
	if name == "" || path.IsAbs(name) || name != path.Clean(name) || name == ".." || strings.HasPrefix(name, "../") || strings.ContainsAny(name, "\\\x00") {
		return "", fmt.Errorf("cannot use the diff: %q is not a plain relative path", f.NewName)
	}
	return name, nil
}

var hunkHeader = regexp.MustCompile(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// checkHunks walks the raw lines: each hunk must hold just as many as its
// header says, and what follows it must not look like more of it.
func checkHunks(text []byte) error {
	lines := strings.Split(string(text), "\n")
	for i := 0; i < len(lines); i++ {
		m := hunkHeader.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		end, ok := hunkEnd(lines, i+1, hunkCount(m[1]), hunkCount(m[2]))
		if !ok {
			return fmt.Errorf("cannot use the diff: the hunk in line %d counts more lines than it holds", i+1)
		}
		if continues(lines, end) {
			return fmt.Errorf("cannot use the diff: the hunk in line %d counts fewer lines than it holds: line %d is left over", i+1, end+1)
		}
		i = end - 1
	}
	return nil
}

func hunkCount(digits string) int {
	if digits == "" {
		return 1
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return n
}

func hunkEnd(lines []string, at, before, after int) (int, bool) {
	for before > 0 || after > 0 {
		if at >= len(lines) {
			return at, false
		}
		switch l := lines[at]; {
		case strings.HasPrefix(l, "+"):
			after--
		case strings.HasPrefix(l, "-"):
			before--
		case strings.HasPrefix(l, " "), l == "", l == "\r":
			before, after = before-1, after-1
		case strings.HasPrefix(l, `\`):
		default:
			return at, false
		}
		at++
	}
	return at, before == 0 && after == 0
}

// continues tells whether the line after a complete hunk is one more hunk line.
// The headers of the next file and the signature of a mailed patch are not.
func continues(lines []string, at int) bool {
	for at < len(lines) && strings.HasPrefix(lines[at], `\`) {
		at++
	}
	if at >= len(lines) {
		return false
	}
	l := lines[at]
	switch {
	case strings.HasPrefix(l, "--- ") && at+1 < len(lines) && strings.HasPrefix(lines[at+1], "+++ "):
		return false
	case l == "-- ":
		return false
	}
	return strings.HasPrefix(l, "+") || strings.HasPrefix(l, "-") || strings.HasPrefix(l, " ")
}

// apply returns the text with the diff applied at exactly the lines it names,
// or a *mismatch.
func (d fileDiff) apply(text []byte) ([]byte, error) {
	var out bytes.Buffer
	err := gitdiff.Apply(&out, bytes.NewReader(text), d.file)
	if err == nil {
		return out.Bytes(), nil
	}
	m := &mismatch{reason: "the diff does not fit: " + err.Error()}
	switch there := bytes.Contains(text, []byte("\r\n")); {
	case there && !d.crlf():
		m.hint = `the file ends its lines with \r\n; the diff has to as well`
	case !there && d.crlf():
		m.hint = `the diff ends its lines with \r\n and the file does not: sed -i 's/\r$//' takes them away`
	default:
		m.hint = d.suggestion(readSource(text))
	}
	return nil, m
}

// crlf tells whether the diff's lines of text end as on Windows.
func (d fileDiff) crlf() bool {
	for _, frag := range d.file.TextFragments {
		for _, l := range frag.Lines {
			if strings.HasSuffix(l.Line, "\r\n") {
				return true
			}
		}
	}
	return false
}

// suggestion names the one place where the first misplaced hunk would fit, for
// a person to judge. Look-alike code in another class is just such a place.
func (d fileDiff) suggestion(s *source) string {
	lines := strings.SplitAfter(string(s.text), "\n")
	for _, frag := range d.file.TextFragments {
		var old []string
		for _, l := range frag.Lines {
			if l.Op != gitdiff.OpAdd {
				old = append(old, l.Line)
			}
		}
		want := int(frag.OldPosition) - 1
		at, times := occurrences(lines, old)
		if times != 1 || at == want {
			continue
		}
		offset := len(strings.Join(lines[:at+int(frag.LeadingContext)], ""))
		return fmt.Sprintf("the hunk for line %d would fit at line %d, in %s; if it is meant, make the diff anew", want+1, at+1, orFile(s.enclosing(offset)))
	}
	return ""
}

func occurrences(lines, block []string) (first, times int) {
	if len(block) == 0 {
		return 0, 0
	}
	for at := 0; at+len(block) <= len(lines); at++ {
		if slices.Equal(lines[at:at+len(block)], block) {
			if times == 0 {
				first = at
			}
			times++
		}
	}
	return first, times
}

// reverse returns the diff that undoes d.
func (d fileDiff) reverse() fileDiff {
	back := &gitdiff.File{OldName: d.file.NewName, NewName: d.file.OldName}
	for _, frag := range d.file.TextFragments {
		r := &gitdiff.TextFragment{
			OldPosition: frag.NewPosition, OldLines: frag.NewLines,
			NewPosition: frag.OldPosition, NewLines: frag.OldLines,
			LinesAdded: frag.LinesDeleted, LinesDeleted: frag.LinesAdded,
			LeadingContext: frag.LeadingContext, TrailingContext: frag.TrailingContext,
		}
		r.Lines = swapLines(frag.Lines)
		back.TextFragments = append(back.TextFragments, r)
	}
	return fileDiff{d.name, back}
}

// proves tells whether a text that fits the result shows that the diff was
// applied: every hunk has lines that tell the place, and either brings another
// or makes neighbours of those before and after it.
func (d fileDiff) proves() bool {
	return !slices.ContainsFunc(d.file.TextFragments, func(f *gitdiff.TextFragment) bool {
		before, after := hasText(f.Lines[:f.LeadingContext]), hasText(f.Lines[len(f.Lines)-int(f.TrailingContext):])
		brings := slices.ContainsFunc(f.Lines, func(l gitdiff.Line) bool { return l.Op == gitdiff.OpAdd && notBlank(l) })
		return !(before && after) && !(brings && (before || after))
	})
}

func hasText(lines []gitdiff.Line) bool { return slices.ContainsFunc(lines, notBlank) }

func notBlank(l gitdiff.Line) bool { return strings.TrimSpace(l.Line) != "" }

// swapLines turns additions into deletions and keeps deletions before additions
// within each run, as a diff has them.
func swapLines(lines []gitdiff.Line) []gitdiff.Line {
	var out, added []gitdiff.Line
	for _, l := range lines {
		switch l.Op {
		case gitdiff.OpAdd:
			out = append(out, gitdiff.Line{Op: gitdiff.OpDelete, Line: l.Line})
		case gitdiff.OpDelete:
			added = append(added, gitdiff.Line{Op: gitdiff.OpAdd, Line: l.Line})
		default:
			out = append(append(out, added...), l)
			added = nil
		}
	}
	return append(out, added...)
}
