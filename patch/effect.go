package patch

import (
	"fmt"
	"slices"
	"strings"
)

// Effectiveness says whether a patch did at run time what it is for. The values
// are an interface to scripts.
type Effectiveness string

// The verdicts on a patch. Whether the answers of a patched server are right is
// another question, asked by the output check.
const (
	Effective   Effectiveness = "effective"    // every rank showed the proof
	Partial     Effectiveness = "partial"      // some ranks did, the moment for it is over
	NotExpected Effectiveness = "not_expected" // the server's settings do not call for it
	Ineffective Effectiveness = "ineffective"  // it should have shown and did not
	Unknown     Effectiveness = "unknown"      // nothing is declared, or it is too early to say
)

// Facts are what is known of a patch before the server runs.
type Facts struct {
	Patch   Patch
	InPlace bool     // the plan's state was applied, or Apply put it there
	Argv    []string // of the server
}

// Seen is what the output of one attempt has shown so far. Ranks are named as
// the server prints them. A rank that completed the proof phase, or printed the
// marker, is in Proved; one that only began the phase is in Began.
type Seen struct {
	Expected []string // the ranks of this launch; empty = not known yet
	Began    []string
	Proved   []string
	Over     bool              // the phase Before was reached, or the attempt ended
	Settings map[string]string // what the server says it resolved: "moe_runner_backend" -> "auto"; wins over argv
}

// Verdict is an Effectiveness with its evidence.
type Verdict struct {
	Effect  Effectiveness `json:"effect"`
	Missing []string      `json:"missing,omitempty"` // ranks without the proof, where some have it
	Reason  string        `json:"reason"`
}

// Effect judges one patch. It is pure, and calling it again with more evidence
// only ever moves unknown to something else until the moment is over.
func Effect(f Facts, seen Seen) Verdict {
	proof := f.Patch.Proof
	switch {
	case !f.InPlace:
		return Verdict{Effect: Ineffective, Reason: "the patch is not in the file"}
	case proof.Phase == "" && proof.Marker == "":
		return Verdict{Effect: Unknown, Reason: "the patch declares no proof"}
	}
	missing := without(seen.Expected, seen.Proved)
	switch {
	case len(seen.Proved) > 0 && (proof.Ranks == RanksAny || len(seen.Expected) > 0 && len(missing) == 0):
		return Verdict{Effect: Effective, Reason: fmt.Sprintf("%s on %s", proof.what(), ranks(seen.Proved))}
	case !seen.Over:
		return Verdict{Effect: Unknown, Reason: fmt.Sprintf("%s not yet on %s", proof.what(), ranks(missing))}
	case len(seen.Expected) == 0 && len(seen.Proved) > 0:
		return Verdict{Effect: Unknown, Reason: fmt.Sprintf("%s on %s, but which ranks there are is not known", proof.what(), ranks(seen.Proved))}
	case len(seen.Proved) > 0:
		return Verdict{Effect: Partial, Missing: missing, Reason: fmt.Sprintf("%s on %s, not on %s", proof.what(), ranks(seen.Proved), ranks(missing))}
	case len(seen.Began) > 0:
		return Verdict{Effect: Partial, Missing: missing, Reason: fmt.Sprintf("%s began on %s and completed nowhere", proof.what(), ranks(seen.Began))}
	}
	if why := f.unmet(seen.Settings); why != "" {
		return Verdict{Effect: NotExpected, Reason: why}
	}
	return Verdict{Effect: Ineffective, Reason: proof.what() + " on no rank"}
}

// Unmet says, before the launch, why the patch cannot have an effect with this
// command. It is empty where nothing speaks against one.
func (p Patch) Unmet(argv []string) string { return Facts{Patch: p, Argv: argv}.unmet(nil) }

func (f Facts) unmet(settings map[string]string) string {
	for _, r := range f.Patch.Requires {
		value, given := flagValue(f.Argv, r.Flag)
		if resolved, ok := settings[strings.ReplaceAll(strings.TrimLeft(r.Flag, "-"), "-", "_")]; ok {
			value, given = resolved, !slices.Contains([]string{"", "None", "False"}, resolved)
		}
		if r.metBy(value, given) {
			continue
		}
		return r.sentence(value, given)
	}
	return ""
}

func (r Requirement) metBy(value string, given bool) bool {
	if !given {
		return r.Absent
	}
	return slices.Contains(r.Is, value)
}

func (r Requirement) sentence(value string, given bool) string {
	now := r.Flag + " is not given"
	if given {
		now = strings.TrimSpace(r.Flag + " " + value)
	}
	want := "is to be absent"
	if len(r.Is) > 0 {
		want = "is to be " + strings.Join(r.Is, " or ")
	}
	text := fmt.Sprintf("%s (it %s)", now, want)
	if r.Why != "" {
		text += ": " + r.Why
	}
	return text
}

// flagValue reads a flag as argparse does: "--flag value" or "--flag=value",
// the last one wins.
func flagValue(argv []string, flag string) (value string, given bool) {
	for i, arg := range argv {
		name, rest, joined := strings.Cut(arg, "=")
		if name != flag {
			continue
		}
		given = true
		switch {
		case joined:
			value = rest
		case i+1 < len(argv) && !strings.HasPrefix(argv[i+1], "-"):
			value = argv[i+1]
		default:
			value = ""
		}
	}
	return value, given
}

func (p Proof) what() string {
	if p.Phase != "" {
		return "phase " + p.Phase
	}
	return fmt.Sprintf("marker %q", p.Marker)
}

func ranks(names []string) string {
	switch len(names) {
	case 0:
		return "any rank"
	case 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

func without(all, some []string) []string {
	var rest []string
	for _, name := range all {
		if !slices.Contains(some, name) {
			rest = append(rest, name)
		}
	}
	return rest
}
