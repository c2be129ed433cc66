package supervisor

import (
	"slices"
	"time"

	"github.com/rs/zerolog"

	"sglaunch/internal/mask"
	"sglaunch/internal/shim/wire"
	"sglaunch/internal/visible"
	"sglaunch/supervisor/machine"
)

// What the machine reports goes to a person, to whoever watches, and to the records
// of the attempt.

// report tells a person and the records.
func (h *hands) report(attempt int, r machine.Report) {
	now := time.Now()
	r = h.launch.memory.addTo(h.withKit(r), now)
	if r.Text != "" {
		h.order(wire.Message{Type: wire.Print, Text: "sglaunch: " + visible.Line(mask.String(r.Text))})
	}
	e := envelope{V: 1, Time: now, Launch: h.Name, Attempt: attempt, Event: r.Event, Text: mask.String(r.Text), Fields: masked(r.Fields)}
	h.launch.memory.told(e)
	h.front.told(e)
	select {
	case h.records <- e:
	default: // a disk that hangs
		h.dropped.Add(1)
	}
	if r.Event == "attempt_ended" {
		h.endAttempt()
	}
}

// note tells a person something that no decision hangs on.
func (h *hands) note(event, text string) {
	h.mu.Lock()
	attempt := h.attempt
	h.mu.Unlock()
	h.report(attempt, machine.Report{Event: event, Text: text})
}

// masked hides secrets in what is told: a line of the server's may hold its
// arguments.
func masked(fields map[string]any) map[string]any {
	if fields == nil {
		return nil
	}
	out := make(map[string]any, len(fields))
	for name, value := range fields {
		switch v := value.(type) {
		case string:
			value = mask.String(v)
		case []string:
			all := slices.Clone(v)
			for i := range all {
				all[i] = mask.String(all[i])
			}
			value = all
		}
		out[name] = value
	}
	return out
}

// writeRecords keeps the events of each attempt and, when one has ended, its
// result.
func (h *hands) writeRecords() {
	file := appender{what: "events", tell: func(text string) {
		h.order(wire.Message{Type: wire.Print, Text: "sglaunch: " + text})
	}}
	log := zerolog.New(&file)
	made := 0 // the newest attempt that has a folder
	each(h.records, h.ending, func(e envelope) {
		if e.Attempt > made { // the first word of an attempt may be here before its first effect
			if _, err := h.launch.NewAttempt(e.Attempt); err == nil {
				made = e.Attempt
			}
		}
		file.to(h.attemptFolder(e.Attempt).Events())
		logEvent(log, e)
		switch e.Event {
		case "server_ready": // a launch that serves for weeks may end with the machine
			if report, ok := h.reader.Report(); ok {
				h.launch.memory.numbers(e.Attempt, report.Numbers)
			}
		case "attempt_ended":
			h.writeResult(e)
		}
	})
	file.close()
}

func (h *hands) writeResult(e envelope) {
	r := attemptRecord{
		V: 1, Time: e.Time, Launch: h.Name, Attempt: e.Attempt,
		Outcome: e.Word("outcome"), Cause: e.Word("cause"), Phase: e.Word("phase"), Text: mask.String(e.Word("text")),
	}
	r.Ready, _ = e.Fields["ready"].(bool)
	r.OutputCheck = checkOf(h.attemptFolder(e.Attempt).Events())
	if report, ok := h.reader.Report(); ok {
		r.Explain = explainJSON(report)
		h.launch.memory.numbers(e.Attempt, report.Numbers)
	}
	_ = writeJSON(h.attemptFolder(e.Attempt).Result(), r)
}
