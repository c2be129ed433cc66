package machine

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sglaunch/phases"
)

// Which patch is to blame. A launch without a patch is worth less than one with
// it, so a patch is taken back for a reason: the failure names it, it enables
// the phase that failed, or it is all that has changed since the last launch
// that worked.

// suspicion names the active patches that the failure itself points to. It is
// sure where the patch and nothing else explains the failure; a traceback that
// runs through a large patched file is a weaker sign than a rung for the cause.
func (m *Machine) suspicion(c phases.Cause) (d Decision, sure bool) {
	r := &m.run
	if !mayBePatch(c) || r.Outcome == OutcomeRefused {
		return Decision{}, false
	}
	for _, p := range r.Patches {
		switch {
		case p.Name == r.Culprit:
			return blame(fmt.Sprintf("patch %s had no effect", p.Name), p.Name), true
		case p.Proof != "" && p.Proof == r.Phase.String() && !r.ready():
			return blame(fmt.Sprintf("it failed in %s, the phase that patch %s enables", p.Proof, p.Name), p.Name), true
		}
	}
	for _, p := range r.Patches {
		if file, ok := p.inFrames(r.Diagnosis.Frames); ok {
			return blame(fmt.Sprintf("the traceback runs through %s, which patch %s changed", filepath.Base(file), p.Name), p.Name), false
		}
	}
	names := r.activeNames()
	switch {
	case len(names) == 0:
	case r.Corrupt:
		return blame("its answers are wrong with "+strings.Join(names, ", "), names...), true
	case r.Cause == "patch_failed", r.Cause == "output_corrupt":
		return blame("whatever patch there is comes first under suspicion", names...), true
	}
	return Decision{}, false
}

func blame(reason string, patches ...string) Decision {
	return Decision{Suspects: patches, Reason: reason + ", so the next attempt runs without " + strings.Join(patches, ", ")}
}

// mayBePatch: no patch of a source file takes a token, a path, a port, a
// neighbour's memory or a driver away.
func mayBePatch(c phases.Cause) bool {
	switch c.Name {
	case "port_in_use", "bad_argument", "needs_input", "killed_outside", "peer_rank_failed", "gpu_memory_held":
		return false
	}
	return c.Group != "hardware" && c.Group != "files"
}

func (p ActivePatch) inFrames(frames []string) (file string, ok bool) {
	for _, file := range p.Files {
		for _, frame := range frames {
			if frame == file || sameModule(file, frame) {
				return file, true
			}
		}
	}
	return "", false
}

// sameModule compares by the path below the installed package: a traceback
// may show another prefix (a link, an editable install).
func sameModule(a, b string) bool {
	const root = "/sglang/"
	i, j := strings.LastIndex(a, root), strings.LastIndex(b, root)
	return i >= 0 && j >= 0 && a[i:] == b[j:]
}

// bisect finds the culprit among patches that are new and that nothing else
// points to: each failing attempt that went without one half clears that half.
type bisect struct {
	Among []string // the culprit is one of these, if it is a patch at all
	Out   []string // the half that the running attempt goes without
	Over  bool     // no patch is to blame, or it works: not begun again
}

// without lists the patches that an attempt does not apply.
func (m *Machine) without() []string {
	return append(slices.Clone(m.suspects), m.bisect.Out...)
}

// onlyChange blames what is new since the last launch that worked, where
// nothing but patches is.
func (m *Machine) onlyChange(c phases.Cause) (Decision, bool) {
	if m.bisect.Over || !mayBePatch(c) || m.run.Outcome == OutcomeRefused {
		return Decision{}, false
	}
	if len(m.bisect.Among) > 0 {
		return m.halve(less(m.bisect.Among, m.bisect.Out)), true
	}
	if m.lastGood == nil || m.lastGood.Changed || len(m.steps) > 0 {
		return Decision{}, false
	}
	fresh := less(m.run.activeNames(), m.lastGood.Patches)
	if len(fresh) == 0 {
		return Decision{}, false
	}
	return m.halve(fresh), true
}

// halve goes on with the patches that are left in question.
func (m *Machine) halve(among []string) Decision {
	if len(among) == 0 {
		return Decision{Bisect: &bisect{Over: true}, Reason: "it failed without each of the new patches, so none of them is to blame and all are back"}
	}
	out := among[:(len(among)+1)/2]
	reason := fmt.Sprintf("patch %s is all that is new since the last launch that worked, so the next attempt runs without it", out[0])
	if len(among) > 1 || len(m.bisect.Among) > 0 {
		reason = fmt.Sprintf("one of the new patches may be to blame (%s), so the next attempt runs without %s",
			strings.Join(among, ", "), strings.Join(out, ", "))
	}
	return Decision{Bisect: &bisect{Among: among, Out: out}, Reason: reason}
}

// less returns the names that are not among the others.
func less(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(others, n) })
}
