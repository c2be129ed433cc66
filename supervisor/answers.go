package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"sglaunch/internal/probe"
	"sglaunch/internal/probe/answers"
	"sglaunch/internal/statedir"
	"sglaunch/supervisor/machine"
)

// checkOutput asks the ready server for answers and says what is to be thought
// of them. What the server is asked meanwhile is our doing: nobody is served.
func (h *hands) checkOutput(ctx context.Context, attempt int, size machine.CheckSize) machine.Body {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h.mu.Lock()
	h.endCheck = cancel
	h.mu.Unlock()

	defer h.watch.askedByUs()()
	heard := h.watch.proberOf(attempt).Ask(ctx, probe.Check(size), h.front.answered)
	base := h.launch.memory.soundAnswers()
	v := answers.Judge(heard.Answers, heard.Tokens, base)
	c := machine.Checked{
		Answers: v.Answers, Tokens: v.Tokens, Asked: v.Asked, Faulty: v.Faulty, Variety: v.Variety,
		Corrupt: v.Why, Undone: heard.Undone, Silent: heard.Silent,
		Sees: answers.Smallest(v.Answers, answers.Confidence), Confidence: answers.Confidence,
	}
	if v.Corrupt {
		if err := h.keepAnswers(attempt, heard.Answers); err != nil {
			h.note("evidence", fmt.Sprintf("the wrong answers are not kept: %v", err))
		}
	}
	return c
}

// stopAsking ends a check: the server it asks is about to be signalled.
func (h *hands) stopAsking() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.endCheck != nil {
		h.endCheck()
		h.endCheck = nil
	}
}

// keepAnswers writes the answers down for a person.
func (h *hands) keepAnswers(attempt int, all []answers.Answer) error {
	folder := h.attemptFolder(attempt).Evidence()
	if err := os.MkdirAll(folder, statedir.DirMode); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(folder, "answers.jsonl"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, statedir.FileMode)
	if err != nil {
		return err
	}
	if err := answers.Write(f, all); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// cannotCheck says why the server that a command starts cannot be asked for
// answers; "" = it can.
func (s Setup) cannotCheck() string {
	o, ok := s.probeOptions()
	switch {
	case !ok:
		return "where the server answers HTTP is not known ([ready] url tells it)"
	case o.Follower:
		return "a node that is not the first takes no requests"
	}
	return o.NoGenerate
}

// probeOptions is how the server is reached over HTTP.
func (s Setup) probeOptions() (probe.Options, bool) {
	options, ok := probe.OptionsFor(s.read())
	if s.URL != "" {
		options.URL, options.Own, ok = s.URL, false, true
	}
	return options, ok
}
