package phases

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"sglaunch/internal/visible"
)

// WriteTimeline writes a report for a person: the verdict first, then where the
// time went, who is behind, and what else was said.
func WriteTimeline(w io.Writer, r Report) error {
	p := &printer{w: w}
	p.verdict(r)
	p.spans(r)
	p.ranks(r)
	p.facts(r)
	p.echoes(r)
	p.earlier(r)
	return p.err
}

// A printer writes lines that are harmless on a terminal, whatever a server said
// in them, and keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, visible.Line(fmt.Sprintf(format, args...)))
	}
}

func (p *printer) verdict(r Report) {
	p.line("%s", headline(r))
	if r.Cut != "" {
		p.line("  %s: all this is up to line %d", r.Cut, r.Lines)
	}
	if r.Root != nil {
		p.line("  line %d%s: %s", r.Root.Line, ofRank(r.Root.Rank), r.Root.Text)
	}
	if r.Cause != nil {
		p.line("  cause: %s (confidence %s)", *r.Cause, r.Confidence)
	}
	if r.Retry != "" {
		p.line("  does an unchanged relaunch help: %s", r.Retry)
	}
	if r.Remedy != "" {
		p.line("  what helps: %s", r.Remedy)
	}
}

// headline is the answer in one line.
func headline(r Report) string {
	switch {
	case r.Failed && r.Ready:
		return "failed after it had been ready"
	case r.Failed:
		return fmt.Sprintf("failed in %s", r.Phase)
	case r.Ready && r.Drained:
		return "ready, then shut down in order"
	case r.Ready:
		return fmt.Sprintf("ready; now %s", r.Phase)
	case r.Drained:
		return fmt.Sprintf("stopped in order while in %s", r.Phase)
	case r.Cause != nil:
		return fmt.Sprintf("stops in %s; it may be waiting", r.Phase)
	}
	return fmt.Sprintf("stops in %s", r.Phase)
}

func ofRank(rank string) string {
	if rank == "" || rank == mainRank {
		return ""
	}
	return " of " + rank
}

func (p *printer) spans(r Report) {
	if len(r.Phases) == 0 {
		return
	}
	p.line("")
	table := tabwriter.NewWriter(p.w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "phase\tbegan\ttook")
	for _, s := range r.Phases {
		fmt.Fprintf(table, "%s\t%s\t%s\n", s.Name, clock(s.Begin), took(s))
	}
	if err := table.Flush(); p.err == nil {
		p.err = err
	}
}

func clock(t *Timestamp) string {
	if t == nil {
		return "-"
	}
	return time.Time(*t).Format("2006-01-02 15:04:05")
}

func took(s Span) string {
	switch {
	case s.Seconds != nil:
		return duration(*s.Seconds)
	case s.End == nil && s.Begin != nil:
		return "..."
	}
	return "-"
}

// duration writes seconds as a person would: 12s, 6m22s, 1h03m.
func duration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// ranks lists them by phase, the slowest first, where they differ or are many.
func (p *printer) ranks(r Report) {
	if len(r.Ranks) < 2 {
		return
	}
	byPhase := make(map[Phase][]string)
	for name, phase := range r.Ranks {
		byPhase[phase] = append(byPhase[phase], name)
	}
	p.line("")
	for _, phase := range Phases() {
		names := byPhase[phase]
		if len(names) == 0 {
			continue
		}
		sortRanks(names)
		p.line("%d of %d ranks in %s: %s", len(names), len(r.Ranks), phase, shorten(names, 16))
	}
}

// sortRanks puts TP2 before TP10.
func sortRanks(names []string) {
	sort.Slice(names, func(i, j int) bool {
		a, b := names[i], names[j]
		if len(a) != len(b) {
			return len(a) < len(b)
		}
		return a < b
	})
}

func shorten(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func (p *printer) facts(r Report) {
	if r.Progress != nil || r.LastProgress != nil || len(r.Numbers) > 0 {
		p.line("")
	}
	if r.Progress != nil {
		p.line("last counter: %d of %d %s", r.Progress.Done, r.Progress.Total, orElse(r.Progress.Unit, "steps"))
	}
	if r.LastProgress != nil {
		p.line("last progress: line %d of %d%s", r.LastProgress.Line, r.Lines, atTime(r.LastProgress.Time))
	}
	if len(r.Activities) > 0 {
		p.line("seen inside: %s", strings.Join(r.Activities, ", "))
	}
	names := make([]string, 0, len(r.Numbers))
	for name := range r.Numbers {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		p.line("%s: %s", strings.ReplaceAll(name, "_", " "), number(r.Numbers[name]))
	}
	if len(r.Drift) > 0 {
		p.line("note: it got ready, yet no line matched %s: the log format may have drifted", strings.Join(r.Drift, ", "))
	}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func atTime(t *Timestamp) string {
	if t == nil {
		return ""
	}
	return " at " + clock(t)
}

func number(v float64) string {
	if v == float64(int64(v)) {
		return fmt.Sprintf("%d", int64(v))
	}
	return fmt.Sprintf("%.2f", v)
}

func (p *printer) echoes(r Report) {
	if r.EchoesTotal == 0 {
		return
	}
	p.line("")
	p.line("%d more failure lines, taken as consequences:", r.EchoesTotal)
	for i, e := range r.Echoes {
		if i == 8 {
			p.line("  ...")
			return
		}
		p.line("  line %d%s: %s", e.Line, ofRank(e.Rank), clip([]byte(e.Text), 160))
	}
}

func (p *printer) earlier(r Report) {
	if r.Attempts < 2 {
		return
	}
	p.line("")
	told := ""
	if before := r.Attempts - 1; before > len(r.Earlier) {
		told = fmt.Sprintf(", of %d the last %d", before, len(r.Earlier))
	}
	p.line("this is attempt %d of the file; before it%s:", r.Attempts, told)
	for _, e := range r.Earlier {
		p.line("  up to line %d: %s", e.Lines, headline(Report{Phase: e.Phase, Ready: e.Ready, Failed: e.Failed}))
		if e.Root != nil {
			p.line("    %s: line %d%s: %s", *e.Cause, e.Root.Line, ofRank(e.Root.Rank), clip([]byte(e.Root.Text), 160))
		}
	}
}
