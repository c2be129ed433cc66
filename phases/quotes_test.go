package phases

import (
	"fmt"
	"strings"
	"testing"
)

// Where requests are logged, the words of any failure may stand in what somebody asks
// and in what the model answers. They are none of the server's, not even behind a
// prefix of its own.
func TestRecordsOfRequestsProveNothing(t *testing.T) {
	const start = "[2026-11-30 23:00:00] server_args=ServerArgs(model_path='/m')\n[2026-11-30 23:00:09] The server is fired up and ready to roll!\n"
	records := []string{
		"[2026-11-30 23:00:20] Receive: obj=GenerateReqInput(rid='x', text='why: %s', stream=False)",
		"[2026-11-30 23:00:21] Finish: obj=GenerateReqInput(rid='x'), out={'text': 'It means %s', 'meta_info': {}}",
		`{"timestamp": "2026-11-30T23:00:20.1", "event": "request.received", "rid": "x", "obj": {"text": "%s"}}`,
		`{"timestamp": "2026-11-30T23:00:21.1", "event": "request.finished", "rid": "x", "out": {"text": "%s"}}`,
	}
	for _, r := range BuiltinRules().Rules() {
		for _, hit := range r.Hits {
			tracker := NewTracker(BuiltinRules())
			tracker.Feed([]byte(start))
			for _, record := range records {
				line := fmt.Sprintf(record, strings.ReplaceAll(hit, "\n", `\n`))
				for _, o := range tracker.Feed([]byte(line + "\n")) {
					t.Errorf("%s is told of: %s", r.ID, clip([]byte(line), 200))
					t.Logf("%+v", o)
				}
			}
		}
	}
}

// A server in service may complain of what a model said. What it says of itself begins
// its message.
func TestQuotedInServiceIsNotCertain(t *testing.T) {
	const start = "[2026-11-30 23:00:00] server_args=ServerArgs(model_path='/m')\n"
	const ready = start + "[2026-11-30 23:00:09] The server is fired up and ready to roll!\n"
	const fatal = "Scheduler hit an exception: Traceback (most recent call last):\n"
	for name, c := range map[string]struct {
		output  string
		certain bool
	}{
		"its own word":   {ready + "[2026-11-30 23:00:20 TP0] " + fatal, true},
		"while starting": {start + "[2026-11-30 23:00:20 TP0] at last: " + fatal, true},
		"quoted":         {ready + "[2026-11-30 23:00:20 TP0] Failed to parse JSON part: " + fatal, false},
	} {
		tracker, certain := NewTracker(BuiltinRules()), false
		for _, o := range append(tracker.Feed([]byte(c.output)), tracker.Finish()...) {
			certain = certain || o.Certain
		}
		if certain != c.certain {
			t.Errorf("%s: certain is %v", name, certain)
		}
	}
}
