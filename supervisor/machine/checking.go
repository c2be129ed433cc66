package machine

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// A server may be ready and answer wrongly: a kernel that a patch or a flag has
// switched on, a stale compile cache. So where something was changed, it is
// asked for answers before it is announced. Wrong answers end the attempt; a
// check that cannot be done is told, and no failure.

// OutputCheck says whether and how the answers of a ready server are looked at.
type OutputCheck struct {
	Mode string // auto (where something was changed; see checkedFor), always, off; "" = off
	CheckSize
	// Cannot says why this server cannot be asked for answers; "" = it can.
	Cannot string `json:",omitempty"`
}

// CheckSize is what a check costs.
type CheckSize struct {
	Generations int           `json:"generations"`
	Tokens      int           `json:"tokens"`      // of each, at most
	BatchSizes  []int         `json:"batch_sizes"` // asked for at a time, in turn
	Limit       time.Duration `json:"limit"`       // of the whole
}

// String is the cost in words.
func (s CheckSize) String() string {
	var sizes []string
	for _, n := range s.BatchSizes {
		sizes = append(sizes, fmt.Sprint(n))
	}
	return fmt.Sprintf("%d answers of at most %d tokens (%d in all), %s at a time, within %s",
		s.Generations, s.Tokens, s.Generations*s.Tokens, strings.Join(sizes, ", "), s.Limit)
}

// Results of a check, as reports name them.
const (
	checkOff     = "off"
	checkPassed  = "passed"
	checkPartial = "partial"  // none wrong, but not all were given in time
	checkUndone  = "not_done" // and so nothing is known
	CheckCorrupt = "corrupt"
	// checkInnocent is said of a patch without which the answers are as wrong.
	CheckInnocent = "innocent"
)

// changed reports whether the attempt runs with something added that its
// answers could suffer from.
func (m *Machine) changed() bool { return len(m.run.Patches) > 0 || len(m.steps) > 0 }

// wantsCheck reports whether the answers of this attempt are looked at.
func (m *Machine) wantsCheck() bool {
	switch m.opt.Check.Mode {
	case "always":
		return true
	case "auto":
		return m.checkedFor() != ""
	}
	return false
}

// checkedFor says why answers are looked at that nobody has asked to look at
// always; "" = nothing was changed. Once they were wrong in a launch, those of
// what runs instead are looked at too: else nobody would know whether the change
// was to blame.
func (m *Machine) checkedFor() string {
	switch {
	case len(m.run.Patches) > 0:
		return "it runs patched"
	case len(m.steps) > 0:
		return "a fallback has changed something"
	case m.doubted:
		return "they were wrong before"
	case m.lastGood != nil && len(m.lastGood.Differs) > 0:
		return "since the last launch that served there is another: " + strings.Join(m.lastGood.Differs, ", ")
	}
	return ""
}

// check begins the way from ready to announced.
func (m *Machine) check() {
	c := m.opt.Check
	switch {
	case !m.wantsCheck():
		m.say("checked", "", "output_check", checkOff)
		m.announce()
	case !m.checkable():
		m.unchecked(c.Cannot)
	default:
		m.run.CheckAsked = m.now
		m.enter(StateChecking, 0)
		text, why := "asked for "+c.CheckSize.String(), m.checkedFor()
		if why != "" {
			text += ", because " + why
		}
		m.say("progress", text, "reason", why, "activity", "output_check", "generations", c.Generations, "tokens", c.Generations*c.Tokens)
		m.do(CheckOutput{c.CheckSize})
	}
}

// checkable reports whether a check follows on the ready moment.
func (m *Machine) checkable() bool { return m.wantsCheck() && m.opt.Check.Cannot == "" }

// announce ends the start: from here on others may rely on the server.
func (m *Machine) announce() {
	m.run.AnnouncedAt = m.now
	m.enter(StateUp, 0)
	m.say("announced", "")
}

// unchecked goes on without knowing.
func (m *Machine) unchecked(why string) {
	m.say("checked", "its answers were not checked: "+why, "output_check", checkUndone, "reason", why)
	m.announce()
}

// checked takes what the check has found.
func (m *Machine) checked(b Checked) {
	switch {
	case m.state != StateChecking:
	case b.Corrupt != "":
		m.corrupt(b)
	case b.Silent && m.still() > m.opt.Check.Limit/2:
		m.judge(bound{name: "silent", outcome: OutcomeHung, cause: "serving_hang",
			why: fmt.Sprintf("no answer in %s, and nothing moved for %s; %s", m.opt.Check.Limit, round(m.still()), m.standing())})
		if !m.run.Ending {
			m.unchecked(b.Undone)
		}
	case b.Answers == 0:
		m.unchecked(cmp.Or(b.Undone, "there was no answer"))
	default:
		m.sound(b)
	}
}

// still is how long nothing has moved since the check began.
func (m *Machine) still() time.Duration { return m.now.Sub(later(m.run.Moved, m.run.CheckAsked)) }

// sound: no answer is wrong.
func (m *Machine) sound(b Checked) {
	result, short := checkPassed, ""
	if b.Undone != "" {
		result, short = checkPartial, " ("+b.Undone+")"
	}
	m.sayOfPatches(result, "")
	m.say("checked", fmt.Sprintf("its answers are sound: %d of %d%s, %d tokens in %s; a fault in %.1f %% of them or more would have shown with %.0f %%",
		b.Answers, m.opt.Check.Generations, short, b.Tokens, round(m.now.Sub(m.run.CheckAsked)), 100*b.Sees, 100*b.Confidence), m.checkFields(b, result, true)...)
	m.announce()
}

// corrupt: what was changed gives wrong answers. Where nothing was changed,
// and the person has not asked for a check of whatever runs, the change was
// not to blame: the raw command answers in the same way, and is left alone.
func (m *Machine) corrupt(b Checked) {
	own := m.opt.Check.Mode == "auto" && !m.changed() // the model's own way to answer
	m.sayOfPatches(CheckCorrupt, b.Corrupt)
	m.say("checked", "", m.checkFields(b, CheckCorrupt, own)...)
	why := "its answers are wrong: " + b.Corrupt
	if own {
		m.say("verdict", why+"; nothing was changed in this attempt, so no change of sglaunch's is to blame"+m.theirs(),
			"outcome", string(OutcomeUnhealthy), "cause", "output_corrupt", "phase", m.run.Phase.String(), "acted", false)
		for _, name := range m.doubtful {
			m.say("patch", "", "patch", name, "output_checked", CheckInnocent)
		}
		m.doubtful = nil
	} else {
		m.doubted = true
		m.judge(bound{name: "corrupt", outcome: OutcomeUnhealthy, cause: "output_corrupt", why: why})
	}
	if m.run.Ending {
		m.run.Corrupt, m.run.Proven = true, true
		m.doubtful = append(m.doubtful, m.run.activeNames()...)
		return
	}
	m.odd(why)
	m.announce()
}

// theirs says what a person has changed, where the answers were looked at for that.
func (m *Machine) theirs() string {
	if m.lastGood == nil || len(m.lastGood.Differs) == 0 {
		return ""
	}
	return "; " + m.checkedFor()
}

// checkFields is what the records keep of a check. sound: later ones may be held
// against it.
func (m *Machine) checkFields(b Checked, result string, sound bool) []any {
	return []any{"output_check", result, "sound", sound, "reason", cmp.Or(b.Corrupt, b.Undone), "answers", b.Answers, "tokens", b.Tokens,
		"asked", b.Asked, "faulty", b.Faulty, "variety", b.Variety, "seconds", m.now.Sub(m.run.CheckAsked).Seconds()}
}

// sayOfPatches tells of each patch in force what the check says of it.
func (m *Machine) sayOfPatches(result, reason string) {
	for _, name := range m.run.activeNames() {
		m.say("patch", "", "patch", name, "output_checked", result, "reason", reason)
	}
}

// checkOverdue: the check has a limit of its own and did not keep it.
func (m *Machine) checkOverdue() {
	m.unchecked(fmt.Sprintf("it was not answered for in %s", m.opt.Check.Limit+AnswerMargin))
}
