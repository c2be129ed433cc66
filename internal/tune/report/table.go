package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sglaunch/internal/tune"
	"sglaunch/internal/visible"
)

// verdict is the first sentence of every report.
func verdict(s tune.Summary) string {
	switch {
	case s.Verdict != nil:
		return s.Verdict.Text
	case s.Broke != nil:
		return "the trials ended early: " + s.Broke.Text
	}
	return "the trials are not over"
}

// serving says what serves now.
func serving(s tune.Summary) string {
	if s.Done != nil {
		return s.Done.Text
	}
	return "no server was handed over yet"
}

// handOut says how a winner that does not serve is put to use; "" = there is
// none.
func handOut(s tune.Summary) string {
	if s.Verdict == nil || s.Verdict.Winner == "" || s.Serving != nil && s.Serving.Trial == s.Verdict.Winner {
		return ""
	}
	return "In the folder of the study lies winner.toml; sglaunch run -c winner.toml serves it"
}

// measuredOn names what else the figures depend on; "" = nothing is known.
func measuredOn(s tune.Summary) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(s.Facts.Versions)) {
		parts = append(parts, name+" "+s.Facts.Versions[name])
	}
	if s.Facts.Driver != "" {
		parts = append(parts, "driver "+s.Facts.Driver)
	}
	if n := len(s.Facts.GPUs); n > 0 {
		parts = append(parts, fmt.Sprintf("%d GPUs", n))
	}
	if i := strings.LastIndexByte(s.Facts.Model, ' '); i > 0 { // after it comes a digest of its files
		parts = append(parts, s.Facts.Model[:i])
	}
	return strings.Join(parts, ", ")
}

// emptied says of how many runs it is proven that the prefix cache was empty; ""
// = it was to be empty before none.
func emptied(s tune.Summary) string {
	var e tune.Emptiness
	for _, l := range s.Launches {
		for _, m := range l.Measured {
			e.Count(m)
		}
	}
	return e.String()
}

// percent writes a ratio as a change; "" where it is unknown.
func percent(ratio float64) string {
	if ratio == 0 {
		return ""
	}
	return fmt.Sprintf("%+.1f %%", 100*(ratio-1))
}

// compared are the trials with a figure, the best first.
func compared(s tune.Summary) []tune.TrialSummary {
	var all []tune.TrialSummary
	for _, t := range s.Trials[1:] {
		if t.Finding != nil || t.Ratio != 0 {
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b tune.TrialSummary) int { return cmp.Compare(best(b), best(a)) })
	return all
}

// listed are the baseline and the trials with a figure.
func listed(s tune.Summary) []tune.TrialSummary { return append(s.Trials[:1:1], compared(s)...) }

// best is the figure that a trial is listed by: that of its fresh launches.
func best(t tune.TrialSummary) float64 {
	if t.Finding != nil && t.Finding.Pairs > 0 {
		return t.Finding.Ratio.Mid + 1e6 // finalists come first
	}
	return t.Ratio
}

// fresh is what the fresh launches of a trial show.
func fresh(t tune.TrialSummary) string {
	if t.Finding == nil {
		return ""
	}
	return t.Finding.Ratio.String()
}

// remark is what else is to be said of a trial.
func remark(s tune.Summary, t tune.TrialSummary) string {
	seen := join(t.Tactics, held(s, t))
	switch {
	case s.Verdict != nil && s.Verdict.Winner == t.ID:
		return join("the winner", seen)
	case t.Finding != nil:
		return join(t.Finding.Text, seen)
	case t.Skipped != nil:
		return join(t.Skipped.Text, seen)
	}
	return seen
}

// held is what is to be said of the power of a trial's GPUs.
func held(s tune.Summary, t tune.TrialSummary) string { return join(limited(s, t), heldBack(s, t)) }

// caches says which launches compiled or tuned, and of what nobody knows whether
// they did; "" = nothing is known of the caches.
func caches(s tune.Summary) string {
	var changed []string
	var newest *tune.Caches
	for _, l := range s.Launches {
		if l.Changed() {
			changed = append(changed, fmt.Sprint(l.N))
		}
		if l.Ended != nil && l.Ended.Caches != nil {
			newest = l.Ended.Caches
		}
	}
	if newest == nil {
		return ""
	}
	text := s.Study.Caches + ", as they were found by every launch"
	if n := len(changed); n > 0 {
		text = fmt.Sprintf("%s; what launch %s compiled or tuned is new in them", s.Study.Caches, strings.Join(changed[:min(n, 20)], ", "))
	}
	if newest.Problem != "" {
		text += "; " + newest.Problem
	}
	for _, f := range newest.Folders {
		if f.Text != "" {
			text += fmt.Sprintf("; %s: %s", f.Path, f.Text)
		}
	}
	return text
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// left are the trials without a figure, or that were dropped on the way.
func left(s tune.Summary) []tune.TrialSummary {
	return slices.DeleteFunc(slices.Clone(s.Trials[1:]), func(t tune.TrialSummary) bool { return t.Skipped == nil })
}

// failures are the launches that ended by a fault.
func failures(s tune.Summary) []tune.LaunchSummary {
	return slices.DeleteFunc(slices.Clone(s.Launches), func(l tune.LaunchSummary) bool {
		if l.Ended == nil {
			return true
		}
		_, failed := tune.ClassOf(*l.Ended)
		return !failed
	})
}

// figures are the metrics of a run that a table has room for: the objective,
// the constraints, the usual ones, and the energy where it is known.
func figures(s tune.Summary) []string {
	all := []string{s.Study.Objective.Metric}
	for _, c := range s.Study.Constraints {
		all = append(all, c.Metric)
	}
	all = append(all, "output_throughput", "p99_ttft_ms", "mean_tpot_ms")
	if metered(s) {
		all = append(all, perThousand)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(metric string) bool {
		twice := seen[metric]
		seen[metric] = true
		return twice
	})
}

// metrics are all that some run of the night gave, sorted.
func metrics(s tune.Summary) []string {
	seen := map[string]bool{}
	for _, l := range s.Launches {
		for _, m := range l.Measured {
			for metric := range m.Result.Metrics {
				seen[metric] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func figure(m tune.Measured, metric string) string {
	x, ok := m.Result.Metrics[metric]
	if metric == perThousand {
		x, ok = m.PerThousand(), m.PerThousand() > 0
	}
	if !ok {
		return ""
	}
	return figureText(x)
}

// command is a command line that a shell takes; what cannot be seen in it is
// written as bash reads it.
func command(argv []string) string {
	quoted := make([]string, len(argv))
	for i, arg := range argv {
		quoted[i] = arg
		if visible.Line(arg) != arg {
			escaped := strconv.Quote(arg)
			quoted[i] = "$'" + strings.ReplaceAll(escaped[1:len(escaped)-1], "'", `\'`) + "'"
		} else if arg == "" || strings.Trim(arg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%") != "" {
			quoted[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// commands are the newest command of each trial that was started, in the order
// of the plan.
func commands(s tune.Summary) (all []tune.LaunchSummary) {
	for _, t := range s.Trials {
		for _, l := range slices.Backward(s.Launches) {
			if l.Trial.ID == t.ID && len(l.Command) > 0 {
				all = append(all, l)
				break
			}
		}
	}
	return all
}

// clock is a time of the night in the zone of its deadline.
func clock(s tune.Summary, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(s.Deadline.Location()).Format("15:04")
}

// clockOn is a time with its day.
func clockOn(s tune.Summary, t time.Time) string {
	return t.In(s.Deadline.Location()).Format("Monday 2 January 2006, 15:04")
}

// brief is the beginning of a text, for a cell; the rest is below Failures.
func brief(text string) string {
	const most = 70
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return text
}

// state is what became of a launch, in a word or its reason.
func state(l tune.LaunchSummary) string {
	switch {
	case l.Counts:
		return "counts"
	case l.Serves:
		return "serves"
	case l.Why != "":
		return l.Why
	case l.Over.IsZero():
		return "runs"
	case l.Slot.Stage == tune.Morning:
		return "ended"
	}
	return "does not count"
}
