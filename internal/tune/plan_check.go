package tune

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sglaunch/internal/config"
	"sglaunch/patch"
)

// refuse lists why the plan cannot answer its question.
func (p *Plan) refuse(o Outlook) {
	problem := func(text string, args ...any) { p.Problems = append(p.Problems, fmt.Sprintf(text, args...)) }
	switch s := p.Study; {
	case p.Arms == 0:
		problem("no trial fits before %s: a launch takes %s, and %s are needed to compare one trial with the baseline",
			p.Deadline.Format("15:04"), minutes(p.Expect.Launch(len(s.Points()))), minutes(time.Duration(3+2*s.Repeats)*p.Expect.Launch(len(s.Points()))))
	case p.Pairs < 2:
		problem("only %d fresh launches of a finalist fit before %s: two are the least that has an interval", p.Pairs, p.Deadline.Format("15:04"))
	case len(p.Untried) > 0 && !s.Partial:
		problem("%d of %d trials do not fit before %s: take values from the axes, measure fewer points, or set partial = true",
			len(p.Untried), len(p.Trials)-1, p.Deadline.Format("15:04"))
	}
	for _, axis := range slices.Sorted(maps.Keys(p.axes())) {
		if strings.HasPrefix(axis, "--") && o.Flags != nil && !o.Flags[axis] {
			problem("the installed server has no flag %s%s", axis, near(axis, o.Flags))
		}
	}
	p.refuseSimulations(o)
	for _, name := range p.unknownPatches(o.Patches) {
		problem("there is no patch %q: it is neither in the base, nor in the study, nor shipped", name)
	}
}

// axes are the names that some trial sets.
func (p *Plan) axes() map[string]bool {
	all := map[string]bool{}
	for _, t := range p.Trials {
		for name, v := range t.Set {
			all[name] = all[name] || v.Kind != Absent
		}
	}
	maps.DeleteFunc(all, func(_ string, set bool) bool { return !set })
	return all
}

func (p *Plan) unknownPatches(base []string) (unknown []string) {
	known := append(slices.Clone(base), p.Study.PatchNames()...)
	for _, t := range p.Trials {
		names, _ := t.Patches()
		for _, name := range names {
			if _, shipped := patch.Shipped(name); !shipped && !slices.Contains(known, name) && !slices.Contains(unknown, name) {
				unknown = append(unknown, name)
			}
		}
	}
	return unknown
}

// warn lists what a person should know before the night.
func (p *Plan) warn(o Outlook) {
	warning := func(text string, args ...any) { p.Warnings = append(p.Warnings, fmt.Sprintf(text, args...)) }
	s := p.Study
	if p.Pairs >= 2 && p.Pairs < s.Repeats {
		warning("%d of %d fresh launches of a finalist fit: the intervals are wider", p.Pairs, s.Repeats)
	}
	if p.Assumed {
		warning("how much launches scatter here is not known yet: %.1f %% is assumed", 100*p.Noise)
	}
	if o.Flags == nil {
		warning("the installed server could not be asked for its flags")
	}
	if text := s.Unreal(o.Command, p.Trials); text != "" {
		warning("synthetic prompts: %s", text)
	}
	if s.Caches == CachesCold {
		warning("cold caches: 5 to 20 GB of disk and minutes of compiling for each of %d launches", len(p.Launches))
	}
}

// unreal are parts of flags whose effect depends on what the prompts say.
var unreal = []struct{ part, why string }{
	{"speculative", "how many drafted tokens are accepted"},
	{"eplb", "how the experts are loaded"},
	{"moe", "how the experts are loaded"},
	{"--ep", "how the experts are loaded"},
}

// Unreal says what random tokens make unreal about a study; "" = nothing that is
// known, or the prompts are real.
func (s Study) Unreal(command []string, trials []Trial) string {
	if !slices.ContainsFunc(s.Loads, func(l Load) bool { return !l.Real }) {
		return ""
	}
	flags := slices.DeleteFunc(slices.Clone(command), func(arg string) bool { return !strings.HasPrefix(arg, "--") })
	for _, t := range trials {
		flags = slices.AppendSeq(flags, maps.Keys(t.Flags()))
	}
	for _, u := range unreal {
		if slices.ContainsFunc(flags, func(flag string) bool { return strings.Contains(flag, u.part) }) {
			return u.why + " depends on what users write; a load with real = true would show it"
		}
	}
	return ""
}

// near names the flag that was perhaps meant.
func near(flag string, known map[string]bool) string {
	if other := config.Nearest(flag, slices.Sorted(maps.Keys(known))); other != "" {
		return ": did you mean " + other + "?"
	}
	return ""
}
