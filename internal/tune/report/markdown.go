package report

import (
	"fmt"
	"io"
	"strings"

	"sglaunch/internal/tune"
	"sglaunch/internal/visible"
)

// Markdown writes the night for a person who reads it in a terminal or a ticket.
func Markdown(w io.Writer, s tune.Summary) error {
	var b strings.Builder
	line := func(text string, args ...any) { fmt.Fprintf(&b, text+"\n", args...) }
	line("# %s\n", cell(s.Study.Name))
	line("**%s.**\n", cell(verdict(s)))
	line("%s.\n", cell(serving(s)))
	if text := handOut(s); text != "" {
		line("%s.\n", cell(text))
	}
	for _, label := range s.Labels {
		line("> %s\n", cell(label))
	}
	head(line, s)
	markdownTrials(line, s)
	markdownAnswers(line, s)
	markdownLeft(line, s)
	markdownFailures(line, s)
	markdownLaunches(line, s)
	line("## Commands\n")
	for _, l := range commands(s) {
		line("%s:\n\n```\n%s\n```\n", cell(l.Trial.Name), fenced(command(l.Command)))
	}
	_, err := io.WriteString(w, visible.Lines(b.String()))
	return err
}

type liner func(text string, args ...any)

func head(line liner, s tune.Summary) {
	line("From %s to %s, deadline %s. Objective: %s%s, smallest effect that counts: %.3g %%. %d launches.",
		clockOn(s, s.Began), clock(s, s.Until), clock(s, s.Deadline), s.Study.Objective.Metric, on(s.Study.Objective.Load),
		100*s.Study.MinimumEffect, len(s.Launches))
	if s.Verdict != nil && s.Verdict.Noise > 0 {
		line("Launches of one configuration scatter by %.2g %%.", 100*s.Verdict.Noise)
	}
	if text := measuredOn(s); text != "" {
		line("Measured on %s.", cell(text))
	}
	if text := emptied(s); text != "" {
		line("Of the prefix cache: %s.", text)
	}
	if text := caches(s); text != "" {
		line("Caches of kernels and tuning results: %s.", cell(text))
	}
	if s.Broke != nil {
		line("\nThe trials ended early: %s.", cell(s.Broke.Text))
	}
	for _, d := range s.Drifts {
		line("\nBetween launches %d and %d the baseline changed by %s: what was measured in between was measured again.", d.From, d.To, percent(1+d.Change))
	}
	if s.Study.Notes != "" {
		line("\n%s", cell(s.Study.Notes))
	}
	line("")
}

func on(load string) string {
	if load == "" {
		return ""
	}
	return " on " + load
}

func markdownTrials(line liner, s tune.Summary) {
	line("## Trials against the baseline\n")
	line("| trial | before | fresh launches | %s | |\n| --- | --- | --- | --- | --- |", perThousand)
	for _, t := range listed(s) {
		line("| %s | %s | %s | %s | %s |", cell(t.Name), percent(t.Ratio), fresh(t), energy(s, t.ID), cell(remark(s, t)))
	}
	line("")
}

func markdownAnswers(line liner, s tune.Summary) {
	rows := answerRows(s)
	if len(rows) == 0 {
		return
	}
	line("## Answers to fixed prompts\n")
	line("| trial | as the baseline's | length | variety | eval | |\n| --- | --- | --- | --- | --- | --- |")
	for _, r := range rows {
		line("| %s | %s | %s | %s | %s | %s |", cell(r.Name), r.Same, r.Length, r.Variety, cell(r.Eval), cell(r.Remark))
	}
	line("")
}

func markdownLeft(line liner, s tune.Summary) {
	if len(left(s)) == 0 {
		return
	}
	line("## Not tried, or not tried further\n")
	line("| trial | rule | why |\n| --- | --- | --- |")
	for _, t := range left(s) {
		line("| %s | %s | %s |", cell(t.Name), t.Skipped.Rule, cell(t.Skipped.Text))
	}
	line("")
}

func markdownFailures(line liner, s tune.Summary) {
	if len(failures(s)) == 0 {
		return
	}
	line("## Failures\n")
	for _, l := range failures(s) {
		line("Launch %d, %s, %s: %s", l.N, cell(l.Trial.Name), clock(s, l.Over), cell(l.Why))
		if l.Ended.Log != "" {
			line("(%s)", cell(l.Ended.Log))
		}
		if len(l.Ended.Excerpt) > 0 {
			line("\n```\n%s\n```", fenced(l.Ended.Excerpt...))
		}
		line("")
	}
}

func markdownLaunches(line liner, s tune.Summary) {
	names := figures(s)
	line("## Launches\n")
	line("The figure of a launch stands against those of the baseline before and after it; the baseline's own, against its neighbours.\n")
	line("| # | time | stage | trial | point | %s | against the baseline | |", strings.Join(names, " | "))
	line("|%s", strings.Repeat(" --- |", len(names)+7))
	for _, l := range s.Launches {
		start := fmt.Sprintf("| %d | %s | %s | %s |", l.N, clock(s, l.Began), l.Slot.Stage, cell(l.Trial.Name))
		if len(rows(l)) == 0 {
			line("%s |%s %s | %s |", start, strings.Repeat(" |", len(names)), percent(l.Ratio), cell(brief(state(l))))
		}
		for _, m := range rows(l) {
			var row []string
			for _, metric := range names {
				row = append(row, figure(m, metric))
			}
			line("%s %s | %s | %s | %s |", start, m.Point, strings.Join(row, " | "), percent(l.Ratio), cell(spoilt(s, l, m)))
		}
	}
	line("")
}

// rows are the runs of a launch, and after them the points at which there was
// none, for a reason.
func rows(l tune.LaunchSummary) []tune.Measured {
	all := l.Measured[:len(l.Measured):len(l.Measured)]
	if l.Left != nil {
		for _, p := range l.Left.Points {
			all = append(all, tune.Measured{Point: p, Problem: "left out: " + l.Left.Text})
		}
	}
	return all
}

// spoilt says why a run does not count, else what became of its launch.
func spoilt(s tune.Summary, l tune.LaunchSummary, m tune.Measured) string {
	if m.Point.Soak {
		return "not counted: " + strings.Join(m.Result.Notes, ", ")
	}
	if text := s.Study.Broken(m); text != "" {
		return brief(text)
	}
	if why := s.Study.Invalid(m); len(why) > 0 {
		return why[0]
	}
	return join(brief(state(l)), noted(m.Result.Notes))
}

// noted is the first of the notes on a run; the others are in the journal.
func noted(notes []string) string {
	if len(notes) < 2 {
		return strings.Join(notes, "")
	}
	return fmt.Sprintf("%s, and %d more notes", notes[0], len(notes)-1)
}

// counts tells whether a run counts.
func counts(s tune.Summary, m tune.Measured) bool {
	return s.Study.Broken(m) == "" && len(s.Study.Invalid(m)) == 0
}

// cell keeps a text within its cell, and from being read as markup.
func cell(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "`", "'").Replace(text)
}

// fenced keeps lines within their fence.
func fenced(lines ...string) string {
	kept := make([]string, len(lines))
	for i, line := range lines {
		kept[i] = strings.ReplaceAll(visible.Line(line), "```", "'''")
	}
	return strings.Join(kept, "\n")
}
