package conduct

import (
	"fmt"
	"strings"

	"sglaunch/internal/tune"
)

// Line is a record as one line for a person; "" for those that say nothing new.
func Line(r tune.Record) string {
	switch b := r.Body.(type) {
	case tune.Planned:
		return fmt.Sprintf("%d trials beside the baseline; a server serves by %s", len(b.Trials)-1, b.Deadline.Format("Mon 15:04"))
	case tune.Resumed:
		return "the night goes on"
	case tune.Intended:
		return fmt.Sprintf("launch %d: %s, %s", b.Launch, b.Slot.Trial, b.Slot.Stage)
	case tune.Ready:
		return fmt.Sprintf("launch %d is ready after %s%s", b.Launch, round(b.Took), but(b.Differs))
	case tune.Flushed:
		if !b.OK {
			return fmt.Sprintf("launch %d: %s", b.Launch, b.Text)
		}
	case tune.Measured:
		return measuredLine(b)
	case tune.Ended:
		if b.Outcome == "stopped" {
			return ""
		}
		return fmt.Sprintf("launch %d %s: %s", b.Launch, strings.ReplaceAll(b.Outcome, "_", " "), either(b.Cause, b.Text))
	case tune.Settled:
		return settledLine(b)
	case tune.Skipped:
		return fmt.Sprintf("%s is not tried: %s", b.Trial, b.Text)
	case tune.Drifted:
		return fmt.Sprintf("the baseline moved by %+.1f %% between launches %d and %d", 100*b.Change, b.From, b.To)
	case tune.Broke:
		return "the trials end: " + b.Text
	case tune.Decided:
		return b.Verdict.Text
	case tune.Serving:
		return fmt.Sprintf("launch %d serves (%s)", b.Launch, b.Trial)
	case tune.StopAsked:
		return "the trials end: asked by " + b.By
	case tune.Done:
		return b.Text
	}
	return ""
}

func measuredLine(b tune.Measured) string {
	text := fmt.Sprintf("launch %d, %s", b.Launch, b.Point)
	if b.Problem != "" {
		return text + ": " + b.Problem
	}
	if rate, ok := b.Result.Metrics["output_throughput"]; ok {
		text += fmt.Sprintf(": %.0f output tokens/s", rate)
	}
	if b.Result.Failed > 0 {
		text += fmt.Sprintf(", %d requests failed", b.Result.Failed)
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
