package history

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"sglaunch/internal/visible"
	"sglaunch/phases"
)

// shown are the phases with a column of their own: those that take minutes.
var shown = []phases.Phase{phases.LoadingWeights, phases.Autotune, phases.GraphCapture}

const (
	unknown   = "-"
	clockForm = "2006-01-02 15:04:05"
)

// WriteTable writes one line a launch, for a person, in the order given.
func WriteTable(w io.Writer, launches []Launch) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprint(table, "began\tname\tattempts\tready in")
	for _, p := range shown {
		fmt.Fprintf(table, "\t%s", p)
	}
	fmt.Fprintln(table, "\tcaches\toutcome\tcause\tid")
	for _, l := range launches {
		fmt.Fprintln(table, strings.Join(row(l), "\t"))
	}
	return table.Flush()
}

func row(l Launch) []string {
	a := l.telling()
	cells := []string{clock(l.Began), cmp.Or(l.Name, unknown), strconv.Itoa(len(l.Attempts)), a.after(a.Ready)}
	for _, p := range shown {
		span, ok := a.span(p)
		cells = append(cells, took(span.Took, ok))
	}
	cells = append(cells, a.Key.Caches.short(), l.outcome(), cmp.Or(l.last().Cause, unknown), l.ID)
	for i := range cells {
		cells[i] = visible.Line(cells[i])
	}
	return cells
}

// last is the newest attempt, which tells how the launch went.
func (l Launch) last() Attempt {
	if len(l.Attempts) == 0 {
		return Attempt{}
	}
	return l.Attempts[len(l.Attempts)-1]
}

// telling is the newest attempt that became ready, else the newest: its times
// are worth a look.
func (l Launch) telling() Attempt {
	for _, a := range slices.Backward(l.Attempts) {
		if !a.Ready.IsZero() {
			return a
		}
	}
	return l.last()
}

// outcome is how a launch went so far, and whether it ran otherwise than asked.
func (l Launch) outcome() string {
	a := l.last()
	text := a.Outcome
	switch {
	case text != "":
	case !a.Ready.IsZero() && !l.killed():
		text = "ready"
	case a.N > 0 && l.Code == nil && !l.killed():
		text = "starting"
	case a.N > 0 && l.Code != nil && *l.Code == 0 && !l.killed(): // the disk did not take the attempt's end
		text = "stopped"
	case a.Phase != "": // killed before it could tell
		text = "killed in " + a.Phase
	case a.N > 0:
		text = "killed"
	default:
		text = unknown
	}
	if l.Code != nil {
		if *l.Code == 0 && a.failed() { // the launch failed at nothing: somebody ended it then
			text += ", then stopped"
		}
		text += fmt.Sprintf(" (exit %d)", *l.Code)
	}
	if len(a.Changes) > 0 {
		text += ", degraded"
	}
	return text
}

// killed reports whether sglaunch of a launch died, whoever wrote down its end since.
func (l Launch) killed() bool { return l.Killed || l.Reason == KilledReason }

// failed reports whether an attempt ended in a way that nobody wished for.
func (a Attempt) failed() bool {
	return a.Outcome != "" && a.Outcome != "stopped"
}

// span finds a phase of the launch as a whole.
func (a Attempt) span(p phases.Phase) (Span, bool) {
	i := slices.IndexFunc(a.Phases, func(s Span) bool { return s.Rank == "" && s.Phase == p })
	if i < 0 {
		return Span{}, false
	}
	return a.Phases[i], true
}

// short tells the warmth of both caches in one word where it is the same.
func (c Caches) short() string {
	if c.Pages == c.JIT {
		return cmp.Or(string(c.Pages), unknown)
	}
	return fmt.Sprintf("%s/%s", cmp.Or(c.Pages, unknown), cmp.Or(c.JIT, unknown))
}

// WriteDetail writes all that is known of one launch, for a person.
func WriteDetail(w io.Writer, l Launch) error {
	var b strings.Builder
	fmt.Fprintf(&b, "launch     %s\n", l.ID)
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-10s %s\n", label, visible.Line(text))
		}
	}
	line("name", l.Name)
	line("host", l.Host)
	line("command", strings.Join(l.Command, " "))
	line("began", clock(l.Began))
	if l.Code != nil {
		line("ended", fmt.Sprintf("%s, exit %d", clock(l.Ended), *l.Code))
	}
	line("reason", l.Reason)
	if l.Killed {
		line("ended", "sglaunch was killed; `sglaunch recover` looks for what it left behind")
	}
	for _, a := range l.Attempts {
		a.write(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (a Attempt) write(b *strings.Builder) {
	fmt.Fprintf(b, "\nattempt %d  %s\n", a.N, visible.Line(a.story()))
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(b, "  %-9s %s\n", label, visible.Line(text))
		}
	}
	line("cause", a.Cause)
	line("said", strings.TrimSpace(a.Rank+" "+a.Text))
	line("version", a.Key.Version)
	if a.Key.Caches != (Caches{}) {
		line("caches", fmt.Sprintf("checkpoint %s, kernels %s", cmp.Or(a.Key.Caches.Pages, "unknown"), cmp.Or(a.Key.Caches.JIT, "unknown")))
	}
	for _, p := range a.Patches {
		checked := p.Output
		if checked != "" {
			checked = "answers " + checked
		}
		line("patch", strings.Join(slices.DeleteFunc([]string{p.Name, p.State, p.Effect, checked}, isEmpty), ", "))
	}
	for _, c := range a.Changes {
		line("changed", strings.Join(slices.DeleteFunc([]string{c.Rung, c.Text}, isEmpty), ": "))
	}
	for _, text := range numbers(a.Numbers) {
		line("number", text)
	}
	writePhases(b, a.Phases)
}

func isEmpty(s string) bool { return s == "" }

// numbers writes one line a name: "avail_mem_gb TP0 8.4, TP1 8.3".
func numbers(all []Number) (lines []string) {
	values := map[string][]string{}
	for _, n := range all {
		value := strings.TrimSpace(n.Rank + " " + strconv.FormatFloat(n.Value, 'f', -1, 64))
		values[n.Name] = append(values[n.Name], value)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		lines = append(lines, name+" "+strings.Join(values[name], ", "))
	}
	return lines
}

// after is how long after its begin an attempt came to a moment. Of one that was
// taken up as it is the begin is not known.
func (a Attempt) after(t time.Time) string {
	return took(t.Sub(a.Began), !t.IsZero() && !a.Began.IsZero())
}

// story tells how an attempt went, in one line.
func (a Attempt) story() string {
	parts := []string{"began " + clock(a.Began)}
	if !a.Ready.IsZero() {
		parts = append(parts, "ready after "+a.after(a.Ready))
	}
	if a.Outcome != "" {
		end := a.Outcome
		if a.Phase != "" {
			end += " in " + a.Phase
		}
		if !a.Ended.IsZero() {
			end += " after " + a.after(a.Ended)
		}
		parts = append(parts, end)
	}
	return strings.Join(parts, ", ")
}

// writePhases writes one line a phase: the launch's time beside those of the
// fastest and the slowest rank, since a rank that lags is what one looks for.
func writePhases(b *strings.Builder, spans []Span) {
	if len(spans) == 0 {
		return
	}
	table := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "  phase\ttook\tquiet\tprogress\tslowest rank\tfastest rank")
	for _, p := range phases.Phases() {
		whole, slow, fast, ok := ofPhase(spans, p)
		if !ok {
			continue
		}
		progress := unknown
		if whole.Total > 0 {
			progress = strings.TrimSpace(fmt.Sprintf("%d/%d %s", whole.Done, whole.Total, whole.Unit))
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\n", p, whole.took(), took(whole.Quiet, whole.Quiet > 0), progress, slow.ofRank(), fast.ofRank())
	}
	_ = table.Flush() // a strings.Builder takes everything
}

// ofPhase picks the whole, the slowest and the fastest rank of a phase; a
// phase that only ranks know has the slowest as its whole.
func ofPhase(spans []Span, p phases.Phase) (whole, slow, fast Span, ok bool) {
	for _, s := range spans {
		switch {
		case s.Phase != p:
			continue
		case s.Rank == "":
			whole = s
		default:
			if slow.Rank == "" || s.Took > slow.Took {
				slow = s
			}
			if fast.Rank == "" || s.Took < fast.Took {
				fast = s
			}
		}
		ok = true
	}
	if whole == (Span{}) {
		whole = slow
	}
	return whole, slow, fast, ok
}

func (s Span) took() string {
	if !s.Complete {
		return took(s.Took, true) + ", not finished"
	}
	return took(s.Took, true)
}

func (s Span) ofRank() string {
	if s.Rank == "" {
		return unknown
	}
	return s.Rank + " " + took(s.Took, true)
}

// took writes a duration to the second, or that it is unknown.
func took(d time.Duration, known bool) string {
	if !known {
		return unknown
	}
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// clock writes a moment in the reader's time zone.
func clock(t time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return t.Local().Format(clockForm)
}
