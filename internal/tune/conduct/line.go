package conduct

import (
	"fmt"
	"strings"

	"sglaunch/internal/tune"
	"sglaunch/internal/visible"
)

// teller puts records into words for a person: trials by their names.
type teller struct {
	names map[string]string
	study tune.Study
}

// lineMost is how long a line may be: the rest is in the report.
const lineMost = 200

// line is a record as one line, of what can be seen only: others' words are in it,
// and it goes to terminals and to systemd, where a line of its own would be an
// order. "" for those that say nothing new.
func (t *teller) line(r tune.Record) string { return visible.Clip(visible.Line(t.words(r)), lineMost) }

func (t *teller) words(r tune.Record) string {
	switch b := r.Body.(type) {
	case tune.Planned:
		t.learn(b)
		return fmt.Sprintf("%d trials beside the baseline; a server serves by %s", len(b.Trials)-1, b.Deadline.Format("Mon 15:04"))
	case tune.Resumed:
		return "the night goes on"
	case tune.Intended:
		return fmt.Sprintf("launch %d (%s): %s", b.Launch, b.Slot.Stage, t.name(b.Slot.Trial))
	case tune.Ready:
		return fmt.Sprintf("launch %d is ready after %s%s", b.Launch, round(b.Took), but(b.Differs))
	case tune.Answered:
		return answeredLine(b)
	case tune.Flushed:
		if !b.OK {
			return fmt.Sprintf("launch %d: %s", b.Launch, b.Text)
		}
	case tune.Measured:
		return t.measured(b)
	case tune.LeftOut:
		return fmt.Sprintf("launch %d is not measured at %s: %s", b.Launch, tune.PointsText(b.Points), b.Text)
	case tune.Ended:
		return endedLine(b)
	case tune.Settled:
		return settledLine(b)
	case tune.Skipped:
		return fmt.Sprintf("%s %s: %s", dropped(b), t.name(b.Trial), b.Text)
	case tune.Drifted:
		return fmt.Sprintf("the baseline moved by %+.1f %% between launches %d and %d", 100*b.Change, b.From, b.To)
	case tune.Broke:
		return "the trials end: " + b.Text
	case tune.Decided:
		return b.Verdict.Text
	case tune.Serving:
		return fmt.Sprintf("launch %d serves: %s", b.Launch, t.name(b.Trial))
	case tune.StopAsked:
		return "the trials end: asked by " + b.By
	case tune.Done:
		return b.Text
	}
	return ""
}

// learn takes the plan by which records are told: a night that is taken up begins
// without one.
func (t *teller) learn(plan tune.Planned) {
	t.study, t.names = plan.Study, map[string]string{}
	for _, one := range plan.Trials {
		t.names[one.ID] = one.Name
	}
}

// name of a trial; its ID where the plan does not know it any more.
func (t *teller) name(id string) string {
	if name, ok := t.names[id]; ok {
		return name
	}
	return id
}

// answeredLine says what is not told by what follows from the answers.
func answeredLine(b tune.Answered) string {
	text := fmt.Sprintf("launch %d", b.Launch)
	switch {
	case b.Undone != "":
		return text + ": its answers could not be looked at: " + b.Undone
	case b.Eval != nil:
		return text + ": " + either("eval", b.Eval.Line)
	}
	return ""
}

func endedLine(b tune.Ended) string {
	if b.Outcome == "stopped" && !b.Unkillable && b.Held == "" {
		return ""
	}
	text := fmt.Sprintf("launch %d %s: %s", b.Launch, strings.ReplaceAll(b.Outcome, "_", " "), either(b.Cause, b.Text))
	if b.Held != "" {
		text += "; " + b.Held
	}
	return text
}

// dropped says whether a trial was tried at all.
func dropped(b tune.Skipped) string {
	if b.Tried() {
		return "given up:"
	}
	return "not tried:"
}

// measured says what a run gave: the objective, and why it does not count.
func (t *teller) measured(b tune.Measured) string {
	text := fmt.Sprintf("launch %d, %s", b.Launch, b.Point)
	if b.Point.Soak {
		return soakLine(text, b)
	}
	if b.Problem != "" {
		return text + ": " + b.Problem
	}
	if x, ok := b.Result.Metrics[t.study.Objective.Metric]; ok {
		text += fmt.Sprintf(": %s %.4g", t.study.Objective.Metric, x)
	}
	if b.Result.Failed > 0 {
		text += fmt.Sprintf(", %d of %d requests failed", b.Result.Failed, b.Result.Requested)
	}
	for _, note := range b.Result.Notes {
		text += "; " + note
	}
	if why := t.study.Invalid(b); len(why) > 0 {
		text += "; it does not count: " + strings.Join(why, ", ")
	}
	return text
}

func soakLine(text string, b tune.Measured) string {
	text += fmt.Sprintf(" for %s", round(b.Took))
	for _, note := range append(b.Result.Notes, b.Problem) {
		if note != "" {
			text += ": " + note
		}
	}
	return text
}

func settledLine(b tune.Settled) string {
	for _, text := range []string{b.Hardware, b.Problem, b.Hot} {
		if text != "" {
			return "before the next launch: " + text
		}
	}
	return ""
}

func but(differs []string) string {
	if len(differs) == 0 {
		return ""
	}
	return ", but " + strings.Join(differs, ", ")
}

func either(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return a + ": " + b
}
