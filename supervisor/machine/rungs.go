package machine

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"sglaunch/phases"
)

// A Rung is one thing that a relaunch may change after a cause. Those of the
// ladder (see ReadyRungs) are data; one's own come from [[fallback]].
type Rung struct {
	Name   string         `json:"name"`             // as told to a person
	Causes []string       `json:"causes,omitempty"` // any of these; empty = every cause
	Phases []phases.Phase `json:"phases,omitempty"` // any of these; empty = every phase
	// Activity that was told last before the end ("download"); "" = any.
	Activity string   `json:"activity,omitempty"`
	Text     []string `json:"text,omitempty"` // one of these stands in the root's text; empty = any
	// Idle: neither CPU nor GPU was at work, or the same cause came twice.
	Idle bool `json:"idle,omitempty"`
	// Set changes flags: "x0.5" scales the present value, "x0.5|64" takes 64
	// where no value is known, "" adds a flag that stands alone, anything
	// else is the new value.
	Set map[string]string `json:"set,omitempty"`
	Env map[string]string `json:"env,omitempty"` // added to the environment; may hold Private
	// Min and Max bound a scaled value; 0 = no bound.
	Min float64 `json:"min,omitempty"`
	Max float64 `json:"max,omitempty"`
	// Times it may be taken one after another; 0 = once, or three times where
	// it scales a value.
	Times int `json:"times,omitempty"`
}

func (r Rung) times() int {
	if r.Times > 0 {
		return r.Times
	}
	for _, form := range r.Set {
		if scale, _, err := parseForm(form); err == nil && scale > 0 {
			return 3
		}
	}
	return 1
}

func (r Rung) validate() error {
	for _, c := range r.Causes {
		if _, ok := phases.LookupCause(c); !ok {
			return fmt.Errorf("cannot use fallback %q: there is no cause %q", r.Name, c)
		}
	}
	for flag, form := range r.Set {
		if !strings.HasPrefix(flag, "-") {
			return fmt.Errorf("cannot use fallback %q: %q is no flag", r.Name, flag)
		}
		if _, _, err := parseForm(form); err != nil {
			return fmt.Errorf("cannot use fallback %q: %s: %w", r.Name, flag, err)
		}
	}
	if len(r.Set)+len(r.Env) == 0 {
		return fmt.Errorf("cannot use fallback %q: it changes nothing", r.Name)
	}
	if r.Max != 0 && r.Max < r.Min {
		return fmt.Errorf("cannot use fallback %q: max %v is below min %v", r.Name, r.Max, r.Min)
	}
	return nil
}

// step is a rung as it was taken.
type step struct {
	Rung  int // index into ladder
	Name  string
	Flags map[string]string
	Env   map[string]string
	Text  string // for a person
	Fresh bool   // the attempt that has just ended was the first with it
}

// ladder is every rung that may act: those that change nothing which a server
// shows and need no listing, then those of launch.toml.
func (m *Machine) ladder() []Rung { return append(slices.Clip(builtinRungs), m.opt.Rungs...) }

// rung finds the first rung that fits the failure and has something to change.
func (m *Machine) rung(c phases.Cause) (Decision, bool) {
	if m.run.Outcome == OutcomeRefused {
		return Decision{}, false
	}
	for i, r := range m.ladder() {
		if !m.fits(r) || m.taken(i) >= r.times() {
			continue
		}
		if s, ok := m.prepare(r); ok {
			s.Rung = i
			return Decision{Step: &s, Reason: "so the next attempt runs " + s.Text}, true
		}
	}
	return Decision{}, false
}

func (m *Machine) fits(r Rung) bool {
	run := &m.run
	switch {
	case len(r.Causes) > 0 && !slices.Contains(r.Causes, cmp.Or(run.Cause, "unknown")),
		len(r.Phases) > 0 && !slices.Contains(r.Phases, run.Phase),
		r.Activity != "" && r.Activity != run.Activity,
		r.Idle && !run.Idle && m.budget.Same < 2:
		return false
	}
	text := strings.ToLower(run.Diagnosis.Text)
	return len(r.Text) == 0 || slices.ContainsFunc(r.Text, func(t string) bool { return strings.Contains(text, t) })
}

// prepare works out what a rung changes now; false = nothing.
func (m *Machine) prepare(r Rung) (step, bool) {
	s := step{Name: r.Name, Flags: map[string]string{}, Env: map[string]string{}}
	var told []string
	for _, flag := range slices.Sorted(maps.Keys(r.Set)) {
		if len(m.opt.Argv) == 0 {
			return step{}, false // the command line is out of reach
		}
		now, known := m.setting(flag)
		value, ok := nextValue(r.Set[flag], now, known, r.Min, r.Max)
		if !ok || known && value == now {
			continue
		}
		s.Flags[flag] = value
		told = append(told, tellFlag(flag, now, value))
	}
	env := m.environment()
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		if env[name] != r.Env[name] {
			s.Env[name] = r.Env[name]
			told = append(told, name+"="+r.Env[name])
		}
	}
	s.Text = fmt.Sprintf("with %s (%s)", r.Name, strings.Join(told, ", "))
	return s, len(told) > 0
}

func tellFlag(flag, now, value string) string {
	switch {
	case value == "":
		return flag
	case now == "":
		return flag + " " + value
	}
	return fmt.Sprintf("%s %s -> %s", flag, now, value)
}

// climb takes a rung.
func (m *Machine) climb(s step) {
	m.steps = append(m.steps, s)
	for len(m.spent) <= s.Rung {
		m.spent = append(m.spent, 0)
	}
	m.spent[s.Rung]++
}

func (m *Machine) taken(rung int) int {
	if rung >= len(m.spent) {
		return 0
	}
	return m.spent[rung]
}

// undo takes back a rung whose flag this version of the server does not know,
// or with which its answers are wrong. It counts as taken: the next one has its
// turn.
func (m *Machine) undo() (Decision, bool) {
	n := len(m.steps)
	if n == 0 || !m.steps[n-1].Fresh || len(m.steps[n-1].Flags) == 0 {
		return Decision{}, false
	}
	why := ""
	switch {
	case m.run.Cause == "bad_argument":
		why = "this server does not know what the last fallback set"
	case m.run.Corrupt && len(m.run.Patches) == 0:
		why = "the last fallback is all that was changed"
	default:
		return Decision{}, false
	}
	return Decision{Undo: true, Reason: why + ", so it is taken back: " + m.steps[n-1].Text}, true
}

// spawn asks for the server with every change that rungs have made so far.
func (m *Machine) spawn() Spawn {
	flags := map[string]string{}
	for _, s := range m.steps {
		maps.Copy(flags, s.Flags)
	}
	var changes []FlagChange
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		changes = append(changes, FlagChange{flag, flags[flag]})
	}
	return Spawn{Flags: changes, Env: m.environment()}
}

func (m *Machine) environment() map[string]string {
	env := map[string]string{}
	for _, s := range m.steps {
		maps.Copy(env, s.Env)
	}
	return env
}

// setting is the present value of a flag: as a rung set it, as the command
// line gives it, as the server printed it.
func (m *Machine) setting(flag string) (value string, known bool) {
	for _, s := range slices.Backward(m.steps) {
		if v, ok := s.Flags[flag]; ok {
			return v, true
		}
	}
	if v, ok := flagValue(m.opt.Argv, flag); ok {
		return v, true
	}
	value, known = m.run.Diagnosis.Settings[flag]
	return value, known
}

// flagValue reads a flag as argparse does: the last one counts, with its value
// in the same word or in the next.
func flagValue(argv []string, flag string) (value string, ok bool) {
	for i, word := range argv {
		if rest, found := strings.CutPrefix(word, flag+"="); found {
			value, ok = rest, true
		} else if word == flag {
			value, ok = "", true
			if i+1 < len(argv) && !strings.HasPrefix(argv[i+1], "--") {
				value = argv[i+1]
			}
		}
	}
	return value, ok
}

// parseForm takes a value form apart; scale is 0 where it is no scaling.
func parseForm(form string) (scale float64, otherwise string, err error) {
	factor, scaling := strings.CutPrefix(form, "x")
	if !scaling || factor == "" || factor[0] != '.' && (factor[0] < '0' || factor[0] > '9') {
		return 0, form, nil
	}
	factor, otherwise, _ = strings.Cut(factor, "|")
	scale, err = strconv.ParseFloat(factor, 64)
	if err != nil || scale <= 0 || math.IsInf(scale, 0) {
		return 0, "", fmt.Errorf("%q does not scale: write \"x0.5\" or \"x0.5|64\"", form)
	}
	return scale, otherwise, nil
}

// nextValue is the value that a form gives; false = none can be given.
func nextValue(form, now string, known bool, low, high float64) (string, bool) {
	scale, otherwise, err := parseForm(form)
	if err != nil {
		return "", false
	}
	if scale == 0 {
		return form, true
	}
	v, err := strconv.ParseFloat(now, 64)
	if !known || err != nil {
		return otherwise, otherwise != ""
	}
	next := max(v*scale, low)
	if high > 0 {
		next = min(next, high)
	}
	next = math.Round(next*1000) / 1000
	if _, err := strconv.Atoi(now); err == nil {
		next = whole(next, scale)
	}
	if next == v || scale < 1 != (next < v) || next < low || high > 0 && next > high {
		return now, true // the bound is reached
	}
	return strconv.FormatFloat(next, 'f', -1, 64), true
}

// whole rounds a count in the direction of its scaling; none gets to 0.
func whole(next, scale float64) float64 {
	if scale > 1 {
		return math.Ceil(next)
	}
	return max(math.Floor(next), 1)
}
