package supervisor

import (
	"context"
	"fmt"
	"maps"
	"time"

	"sglaunch/internal/history"
	"sglaunch/internal/probe/answers"
	"sglaunch/internal/serve"
	"sglaunch/supervisor/machine"
)

// What earlier checks of answers teach, and what a check leaves behind.

// figuresOfCheck are the fields of a check's report that the history keeps.
var figuresOfCheck = []string{"answers", "asked", "tokens", "faulty", "variety", "seconds"}

// soundAnswers are the figures of the newest answers of this model that were
// found to be sound; nil where there are none.
func (m *memory) soundAnswers() *answers.Figures {
	m.mu.Lock()
	defer m.mu.Unlock()
	figure := func(name string) float64 { return m.sound[history.CheckFigures+name] }
	if figure("answers") == 0 {
		return nil
	}
	return &answers.Figures{
		Answers: int(figure("answers")), Asked: int(figure("asked")), Tokens: int(figure("tokens")),
		Faulty: int(figure("faulty")), Variety: figure("variety"),
	}
}

// addCost: how long a check took the last time, for as many tokens.
func (m *memory) addCost(r machine.Report) machine.Report {
	tokens, _ := r.Fields["tokens"].(int)
	seconds, before := m.sound[history.CheckFigures+"seconds"], m.sound[history.CheckFigures+"tokens"]
	if tokens == 0 || before == 0 {
		return r
	}
	left := time.Duration(seconds * float64(time.Second))
	r.Text += fmt.Sprintf("; %.0f tokens took %s the last time", before, serve.About(left))
	r.Fields = maps.Clone(r.Fields) // the journal holds the same map
	r.Fields["left"] = seconds
	return r
}

// checked keeps what a check has measured. Figures of wrong answers are nothing
// to hold others against.
func (m *memory) checked(e envelope) {
	if sound, _ := e.Fields["sound"].(bool); !sound {
		return
	}
	var all []history.Number
	for _, name := range figuresOfCheck {
		all = append(all, history.Number{Name: history.CheckFigures + name, Value: e.Number(name)})
	}
	m.write(func(ctx context.Context) error { return m.db.RecordNumbers(ctx, m.launch, e.Attempt, all...) })
}

// checkOf reads from an attempt's events what its newest check has found; a
// supervisor before this one may have made it. nil: there was none.
func checkOf(events string) (found *serve.OutputCheck) {
	asked := 0
	eachEvent(events, func(e envelope) {
		switch {
		case e.Event == "progress" && e.Word("activity") == "output_check":
			asked = int(e.Number("generations"))
		case e.Event == "checked":
			found = &serve.OutputCheck{State: e.Word("output_check"), Reason: e.Word("reason"), Done: int(e.Number("answers")), Of: asked}
		}
	})
	return found
}

// remember keeps the verdict on a patch's answers beyond the launch.
func (m *memory) remember(e envelope) {
	name, content := e.Word("patch"), e.Word("content")
	if content == "" {
		return // the journal's word, which a supervisor before has recorded
	}
	switch e.Word("output_checked") {
	case machine.CheckCorrupt:
		w := history.Wrong{Patch: name, Content: content, GPU: e.Word("gpu"), FlashInfer: e.Word("flashinfer"),
			Launch: m.launch, At: e.Time, Reason: e.Word("reason")}
		m.write(func(ctx context.Context) error { return m.db.RecordWrong(ctx, w) })
	case machine.CheckInnocent:
		m.write(func(ctx context.Context) error {
			_, err := m.db.ForgetWrong(ctx, name, m.launch)
			return err
		})
	}
}

// wrong lists the patches that gave wrong answers in earlier launches.
func (m *memory) wrong(ctx context.Context) []history.Wrong {
	if m.db == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, memoryLimit)
	defer cancel()
	all, err := m.db.Wrong(ctx)
	if err != nil {
		m.fail(err)
	}
	return all
}
