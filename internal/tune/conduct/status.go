package conduct

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"sglaunch/internal/tune"
	"sglaunch/internal/visible"
)

// Status is a night as its journal shows it. It may be read while the night is
// performed, and by anybody who may read the study's folder.
type Status struct {
	V        int       `json:"v"`
	Time     time.Time `json:"time"`
	Study    string    `json:"study"`
	Event    string    `json:"event"`   // always tune_status
	Running  bool      `json:"running"` // a tuner works on it
	Done     bool      `json:"done"`
	Began    time.Time `json:"began,omitzero"`
	Deadline time.Time `json:"deadline,omitzero"`

	Trials   int `json:"trials"`   // in the plan, the baseline apart
	Measured int `json:"measured"` // of them, at least once
	Skipped  int `json:"skipped"`  // of them
	Failed   int `json:"failed"`   // launches that ended otherwise than as asked
	Launches int `json:"launches"`

	Now     *Now   `json:"now,omitempty"` // the open launch
	Winner  string `json:"winner,omitempty"`
	Verdict string `json:"verdict,omitempty"`
	Serving string `json:"serving,omitempty"` // trial that was left serving
	Text    string `json:"text,omitempty"`    // the newest word to a person
}

// Now is the launch that runs.
type Now struct {
	Launch int       `json:"launch"`
	Trial  string    `json:"trial"`
	Name   string    `json:"name"` // of the trial
	Stage  string    `json:"stage"`
	Since  time.Time `json:"since"`
	Ready  bool      `json:"ready"`
	Point  string    `json:"point,omitempty"` // that is being measured
}

// StatusOf folds the records of a study into its status.
func StatusOf(study string, records []tune.Record, running bool, now time.Time) Status {
	st := Status{V: 1, Time: now, Study: study, Event: "tune_status", Running: running}
	w := counting{status: &st, words: &teller{}, trials: map[int]string{}, measured: map[string]bool{}, skipped: map[string]bool{}}
	for _, r := range records {
		w.take(r)
	}
	st.Measured, st.Skipped = len(w.measured), len(w.skipped)
	if !running {
		st.Now = nil
	}
	return st
}

// counting is a walk over records.
type counting struct {
	status   *Status
	words    *teller
	trials   map[int]string // of each launch
	measured map[string]bool
	skipped  map[string]bool
}

func (w *counting) take(r tune.Record) {
	st := w.status
	if text := w.words.line(r); text != "" {
		st.Text = text
	}
	switch b := r.Body.(type) {
	case tune.Planned:
		if st.Began.IsZero() {
			st.Began, st.Deadline = r.At, b.Deadline
		}
		st.Trials = len(b.Trials) - 1
	case tune.Intended:
		st.Launches++
		w.trials[b.Launch] = b.Slot.Trial
		st.Now = &Now{Launch: b.Launch, Trial: b.Slot.Trial, Name: w.words.name(b.Slot.Trial), Stage: string(b.Slot.Stage), Since: r.At}
	case tune.Ready:
		st.Now.Ready = true
	case tune.Measuring:
		st.Now.Point = b.Point.String()
	case tune.Measured:
		st.Now.Point = ""
		if id := w.trials[b.Launch]; b.Problem == "" && !b.Point.Soak && id != tune.BaselineID {
			w.measured[id] = true
		}
	case tune.Ended:
		st.Now = nil
		if b.Outcome != "stopped" {
			st.Failed++
		}
	case tune.Skipped:
		w.skipped[b.Trial] = true
	case tune.Decided:
		st.Winner, st.Verdict = b.Verdict.Winner, b.Verdict.Text
	case tune.Serving:
		st.Serving = w.words.name(b.Trial)
	case tune.Resumed:
		st.Now = nil
	case tune.Done:
		st.Done = true
	}
}

// Running reports whether a tuner works on the study of a folder.
func Running(dir string) bool {
	path := filepath.Join(dir, lockName)
	if _, err := os.Stat(path); err != nil {
		return false
	}
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	defer lock.Close()
	free, err := lock.TryRLock()
	return err == nil && !free
}

// Print writes the status for a person.
func (st Status) Print(w io.Writer) error {
	state := "not running"
	switch {
	case st.Done && st.Running:
		state = "over; sglaunch tune run goes on serving"
	case st.Done:
		state = "over"
	case st.Running:
		state = "running"
	}
	head := st.Study + ": " + state
	if !st.Began.IsZero() {
		head += fmt.Sprintf(", began %s, deadline %s", st.Began.Local().Format("Mon 15:04"), st.Deadline.Local().Format("Mon 15:04"))
	}
	lines := []string{head, fmt.Sprintf("  trials: %d, %d measured, %d left out; %d launches, %d failed", st.Trials, st.Measured, st.Skipped, st.Launches, st.Failed)}
	if n := st.Now; n != nil {
		doing := "starts"
		switch {
		case n.Point != "":
			doing = "is measured at " + n.Point
		case n.Ready:
			doing = "is ready"
		}
		lines = append(lines, fmt.Sprintf("  now: launch %d (%s: %s) %s, %s in", n.Launch, n.Stage, n.Name, doing, round(st.Time.Sub(n.Since))))
	}
	if st.Verdict != "" {
		lines = append(lines, "  verdict: "+st.Verdict)
	}
	if st.Serving != "" {
		lines = append(lines, "  serving: "+st.Serving)
	}
	if st.Text != "" && st.Text != st.Verdict {
		lines = append(lines, "  newest: "+st.Text)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, visible.Line(line)); err != nil {
			return err
		}
	}
	return nil
}
