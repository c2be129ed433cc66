package patch

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// change is what a patch does to one file's text.
type change struct {
	edits []Edit
	diff  *fileDiff
}

func (c change) apply(text []byte) ([]byte, error) {
	if c.diff != nil {
		return c.diff.apply(text)
	}
	return applyEdits(text, c.edits)
}

// reverse undoes the change, and reports whether that is possible and the text
// is one that the change could have made.
func (c change) reverse(text []byte) ([]byte, bool) {
	if c.diff != nil {
		before, err := c.diff.reverse().apply(text)
		return before, err == nil
	}
	back, ok := reversed(c.edits)
	if !ok {
		return nil, false
	}
	before, err := applyEdits(text, back)
	if err != nil {
		return nil, false
	}
	again, err := applyEdits(before, c.edits)
	return before, err == nil && bytes.Equal(again, text)
}

// proves tells whether a text that the change could have made shows that it was
// made. An edit that adds leaves what it found, once and with the new text beside
// it. What another edit puts in place may well have stood there before: "return 1"
// stands in many a file in which "return compute(1)" never did.
func (c change) proves() bool {
	if c.diff != nil {
		return c.diff.proves()
	}
	return !slices.ContainsFunc(c.edits, func(e Edit) bool { return !e.adds() })
}

// candidate is one variant looked at in one file.
type candidate struct {
	change  change
	present []Anchor
	before  []string // hashes that the variant declares; none = any release
	after   string
	named   bool // the variant is for just this release, or the only one
}

// origin is what is known of a file's content apart from the patch.
type origin struct {
	release string // hash in the release's RECORD, "" = not listed there
	changed bool   // the caller allows a file that differs from its release
}

// finding is what one candidate makes of one content.
type finding struct {
	state    State
	fits     bool // one of the four states in which the patch is settled
	after    []byte
	unlisted bool // there was no release to compare with
	reason   string
	hint     string
}

// judge decides the state by content. disk is the file as it is; working is the
// same with earlier patches of the plan applied, and what the change works on.
func (c candidate) judge(disk, working []byte, o origin) finding {
	sum := Hash(disk)
	if c.after != "" && sum == c.after {
		return finding{state: WasApplied, fits: true, reason: "the file has just the content that the patch makes"}
	}
	standing := c.standing(sum, o)
	after, misfit := c.change.apply(working)
	before, undoes := c.change.reverse(working)
	if misfit == nil && undoes {
		misfit, undoes = c.change.settle(standing)
	}
	if misfit != nil && undoes && c.isKnown(Hash(before), o) {
		return finding{state: WasApplied, fits: true, reason: "the file has just the content that the patch makes, put there by somebody else; it stays"}
	}
	there := c.holds(working)
	if misfit != nil && undoes && len(c.present) == 0 {
		if there = c.change.proves(); !there {
			misfit = unproven(misfit)
		}
	}
	switch standing {
	case known:
		return c.judgeKnown(after, misfit, there)
	case altered:
		return c.judgeAltered(after, misfit, there, o)
	}
	return c.judgeUnlisted(after, misfit, there)
}

// unproven is the misfit of a change whose result could stand there by chance.
func unproven(misfit error) error {
	m := &mismatch{reason: misfit.Error() + "; what the change puts there stands in the file, which does not prove that it was made"}
	var why *mismatch
	if errors.As(misfit, &why) {
		m.hint = why.hint
	}
	if m.hint == "" {
		m.hint = "where the change is there already, take the patch out, or name code that only the change brings: present = [{ find = \"...\" }], in a [[patch.variant]]"
	}
	return m
}

// settle decides for a change that fits both forward and backward. Where an
// edit adds around what it finds, finding both means that it was made; where it
// takes something away or rewrites, the text to find would be gone if it had been.
func (c change) settle(s standing) (misfit error, undoes bool) {
	adds := 0
	for _, e := range c.edits {
		if e.adds() {
			adds++
		}
	}
	switch {
	case c.diff != nil && s == known, c.diff == nil && adds == 0:
		return nil, false
	case c.diff == nil && adds == len(c.edits):
		return &mismatch{reason: "what the change adds is there, and what present names is not"}, true
	}
	return &mismatch{reason: "the change fits forward and backward: what stands there is not clear"}, false
}

// standing is what a content is apart from the patch.
type standing int

const (
	unlisted standing = iota // nothing to compare with
	known                    // as released, or a declared content
	altered                  // differs from what is known
)

func (c candidate) standing(sum string, o origin) standing {
	switch {
	case len(c.before) > 0:
		if slices.Contains(c.before, sum) {
			return known
		}
		return altered
	case o.release == "":
		return unlisted
	case o.release == sum:
		return known
	}
	return altered
}

func (c candidate) judgeKnown(after []byte, misfit error, there bool) finding {
	switch {
	case there:
		return finding{state: Obsolete, fits: true, reason: "this release has the change already"}
	case misfit == nil:
		return c.pristine(after, "the file is as released")
	}
	return c.misfit(misfit)
}

func (c candidate) judgeAltered(after []byte, misfit error, there bool, o origin) finding {
	switch {
	case there:
		return finding{state: AppliedForeign, fits: true, reason: "the change is there, in a file that differs from its release otherwise; it stays"}
	case misfit == nil && o.changed:
		return c.pristine(after, "the file differs from its release, which allow_changed permits")
	case misfit == nil:
		return finding{state: Drifted, reason: "the file differs from its release, though the patch would fit",
			hint: "reinstall the package, or set allow_changed = true for this patch"}
	}
	return c.misfit(misfit)
}

func (c candidate) isKnown(sum string, o origin) bool {
	if len(c.before) > 0 {
		return slices.Contains(c.before, sum)
	}
	return sum == o.release
}

func (c candidate) judgeUnlisted(after []byte, misfit error, there bool) finding {
	switch {
	case there && c.named:
		return finding{state: AppliedForeign, fits: true, reason: "the change is there already, put there by somebody else; it stays"}
	case there:
		return finding{state: Obsolete, fits: true, reason: "the source has the change already"}
	case misfit == nil:
		f := c.pristine(after, "the patch fits, and there is no release to compare the file with")
		f.unlisted = true
		return f
	}
	return c.misfit(misfit)
}

// pristine confirms that the result really has the change in code.
func (c candidate) pristine(after []byte, reason string) finding {
	s := readSource(after)
	for _, a := range c.present {
		if !s.holds(a) {
			return finding{state: Drifted, reason: fmt.Sprintf("the change would not bring %s into the code", shorten(a.Find))}
		}
	}
	if c.after != "" && Hash(after) != c.after {
		return finding{state: Drifted, reason: "the change would not give the content in sha256_after"}
	}
	return finding{state: Pristine, fits: true, after: after, reason: reason}
}

func (c candidate) misfit(err error) finding {
	f := finding{state: Unsupported, reason: err.Error()}
	if c.named {
		f.state = Drifted
	}
	var m *mismatch
	if errors.As(err, &m) {
		f.hint = m.hint
	}
	return f
}

func (c candidate) holds(text []byte) bool {
	if len(c.present) == 0 {
		return false
	}
	s := readSource(text)
	for _, a := range c.present {
		if !s.holds(a) {
			return false
		}
	}
	return true
}
