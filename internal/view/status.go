package view

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

	"sglaunch/internal/serve"
)

// Status writes what is known of one launch, its newest word last. now is what
// "ago" is counted from.
func Status(w io.Writer, s serve.Status, now time.Time) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", serve.Plain(s.Launch), s.Line())
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s %s\n", name, serve.Plain(fmt.Sprintf(format, args...)))
	}
	if s.Attempt > 0 {
		row("attempt", "%s", attempt(s, now))
	}
	if f := s.Failed; f != nil {
		row("failed", "attempt %d: %s", f.Attempt, failure(*f))
	}
	alive := s.Processes.Server != 0
	if s.Phase != "" && alive {
		row("phase", "%s", phase(s, now))
	}
	if len(s.Ranks) > 0 && alive && !s.Ready {
		row("ranks", "%s", ranks(s))
	}
	if c := s.OutputCheck; c != nil && c.State != "off" {
		row("answers", "%s", c)
	}
	for _, source := range s.Silent {
		row("silent", "%s", source)
	}
	for _, g := range s.GPUs {
		row("GPU "+strconv.Itoa(g.Index), "%s", gpu(g))
	}
	if text := processes(s.Processes); text != "" {
		row("processes", "%s", text)
	}
	if s.HTTP != "" {
		row("HTTP", "http://%s/", s.HTTP)
	}
	if s.Dir != "" {
		row("records", "%s", s.Dir)
	}
	told := s.Next != nil || s.Exit != nil && s.Processes.Supervisor != 0 // by the first line
	if s.Text != "" && !told {
		row("says", "%s", strings.TrimPrefix(s.Text, "sglaunch: "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func attempt(s serve.Status, now time.Time) string {
	text := strconv.Itoa(s.Attempt)
	switch {
	case s.Exit != nil:
		return text + ", ended " + serve.About(now.Sub(s.Exit.Time)) + " ago"
	case s.Ready:
		return fmt.Sprintf("%s, ready for %s after %s", text,
			serve.About(now.Sub(s.ReadySince)), serve.About(s.ReadySince.Sub(s.Since)))
	case !s.Since.IsZero() && s.Processes.Server != 0:
		return text + ", for " + serve.About(now.Sub(s.Since))
	}
	return text
}

func failure(f serve.Failure) string {
	text := f.Outcome
	if f.Cause != "" {
		text += ", " + f.Cause
	}
	if f.Phase != "" {
		text += " in " + f.Phase
	}
	if f.Text != "" {
		text += ": " + f.Text
	}
	return text
}

func phase(s serve.Status, now time.Time) string {
	text := s.Phase + " for " + serve.About(now.Sub(s.PhaseSince))
	if m := s.Moved; m != nil && !s.Ready {
		text += ", last progress " + serve.About(now.Sub(m.Time)) + " ago"
		if m.By != "" {
			text += " (" + m.By + ")"
		}
	}
	return text
}

// ranks groups the ranks by phase; those that lag are named as such.
func ranks(s serve.Status) string {
	by := map[string][]string{}
	for rank, phase := range s.Ranks {
		by[phase] = append(by[phase], rank)
	}
	var all []string
	for _, phase := range slices.Sorted(maps.Keys(by)) {
		names := by[phase]
		slices.SortFunc(names, byNumber)
		text := phase + ": " + strings.Join(names, " ")
		if slices.Contains(s.Lagging, names[0]) {
			text += " (behind)"
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// byNumber puts TP2 before TP10.
func byNumber(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func gpu(g serve.GPU) string {
	if g.Lost {
		return "lost: only a reset or a reboot brings it back"
	}
	var parts []string
	if g.Used != nil && g.Total != nil {
		parts = append(parts, fmt.Sprintf("%.1f of %.1f GiB", gib(*g.Used), gib(*g.Total)))
	}
	if g.Util != nil {
		text := fmt.Sprintf("%d %% busy", *g.Util)
		if g.MemUtil != nil && *g.MemUtil == 0 && *g.Util > 0 {
			text += ", no memory traffic"
		}
		parts = append(parts, text)
	}
	if g.Watts != nil {
		parts = append(parts, fmt.Sprintf("%.0f W", *g.Watts))
	}
	if len(parts) == 0 {
		return "nothing is known"
	}
	return strings.Join(parts, ", ")
}

func gib(bytes int64) float64 { return float64(bytes) / (1 << 30) }

func processes(p serve.Processes) string {
	var parts []string
	for _, one := range []struct {
		name string
		pid  int
	}{{"shim", p.Shim}, {"supervisor", p.Supervisor}, {"server", p.Server}} {
		if one.pid != 0 {
			parts = append(parts, fmt.Sprintf("%s %d", one.name, one.pid))
		} else if p.Shim != 0 {
			parts = append(parts, "no "+one.name)
		}
	}
	if more := p.Members - 1; p.Server != 0 && more > 0 {
		parts[len(parts)-1] += fmt.Sprintf(" and %d below it", more)
	}
	return strings.Join(parts, ", ")
}

// Table writes one line a launch, in the order given.
func Table(w io.Writer, all []serve.Status, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "name\tattempt\tfor\tserver\tstatus")
	for _, s := range all {
		since, server := "-", "-"
		if !s.Since.IsZero() {
			since = serve.About(now.Sub(s.Since))
		}
		if s.Processes.Server != 0 {
			server = strconv.Itoa(s.Processes.Server)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\n", serve.Plain(s.Launch), s.Attempt, since, server, s.Line())
	}
	return t.Flush()
}

// News writes one event of a launch that is followed, or nothing where it is
// for the records alone.
func News(w io.Writer, e serve.Envelope) error {
	if e.Text == "" {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s  %s\n", e.Time.Local().Format("15:04:05"), serve.Plain(e.Text))
	return err
}
