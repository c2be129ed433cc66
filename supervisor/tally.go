package supervisor

import (
	"cmp"
	"maps"
	"time"

	"sglaunch/internal/serve"
	"sglaunch/internal/statedir"
	"sglaunch/supervisor/machine"
)

// tally keeps, of all that is told, what a status shows. Its owner guards it.
type tally struct {
	public   bool   // the attempt was announced
	failing  bool   // an attempt failed, and none was announced since
	text     string // newest word to a person
	check    *serve.OutputCheck
	failed   *serve.Failure
	failures map[string]int     // by cause
	spent    map[string]float64 // seconds of the attempt's phases that are over
	next     *serve.Next
	exit     *serve.Exit
}

// anew forgets the attempt before, not how it failed.
func (t *tally) anew() { t.next, t.check, t.spent = nil, nil, nil }

// again takes what a supervisor before has told, as the attempts' events keep it:
// counters go on, and a failure is not forgotten, whoever counts.
func (t *tally) again(attempts []statedir.Attempt) {
	for _, a := range attempts {
		t.anew()
		eachEvent(a.Events(), t.told)
	}
}

// told takes one report.
func (t *tally) told(e envelope) {
	if e.Text != "" {
		t.text = e.Text
	}
	switch e.Event {
	case "phase":
		t.spend(e.Word("before"), e.Number("seconds"))
	case "server_ready":
		t.spend(e.Word("before"), e.Number("phase_seconds"))
	case "progress":
		if e.Word("activity") == "output_check" {
			t.check = &serve.OutputCheck{State: serve.CheckRunning, Of: int(e.Number("generations"))}
		}
	case "checked":
		t.checked(e)
	case "announced":
		t.public, t.failing = true, false
	case "attempt_ended":
		t.public = false
		t.ended(e)
	case "decision":
		t.decided(e)
	case "launch_ended":
		t.exit = &serve.Exit{Time: e.Time, Code: int(e.Number("code")), Reason: e.Word("reason")}
	}
}

func (t *tally) spend(phase string, seconds float64) {
	if phase == "" {
		return
	}
	spent := maps.Clone(t.spent) // whoever shows the one before may still read it
	if spent == nil {
		spent = map[string]float64{}
	}
	spent[phase] = seconds
	t.spent = spent
}

// checked notes the end of a check; how far it had come stays.
func (t *tally) checked(e envelope) {
	over := serve.OutputCheck{State: e.Word("output_check"), Reason: e.Word("reason")}
	if t.check != nil {
		over.Done, over.Of = t.check.Done, t.check.Of
	}
	t.check = &over
}

// answered takes how many answers a check has got.
func (t *tally) answered(n int) {
	if t.check == nil || t.check.State != serve.CheckRunning {
		return
	}
	running := *t.check
	running.Done = n
	t.check = &running
}

func (t *tally) ended(e envelope) {
	outcome := e.Word("outcome")
	if outcome == string(machine.OutcomeStopped) {
		return
	}
	t.failing = true
	t.failed = &serve.Failure{Attempt: e.Attempt, Outcome: outcome,
		Cause: e.Word("cause"), Phase: e.Word("phase"), Text: e.Word("text")}
	failures := maps.Clone(t.failures)
	if failures == nil {
		failures = map[string]int{}
	}
	failures[cmp.Or(e.Word("cause"), "unknown")]++
	t.failures = failures
}

// decided: only a decision that names a delay begins another attempt.
func (t *tally) decided(e envelope) {
	if delay, ok := e.Fields["delay"].(float64); ok {
		t.next = &serve.Next{Time: e.Time.Add(time.Duration(delay * float64(time.Second))), Reason: e.Word("reason")}
	}
}

// fill shows what was told.
func (t *tally) fill(st *serve.Status) {
	st.Text, st.Announced, st.OutputCheck = t.text, t.public, t.check
	st.Failed, st.Failures, st.PhaseSeconds = t.failed, t.failures, t.spent
	st.Next, st.Exit = t.next, t.exit
}
