package phases

import (
	"strings"
	"testing"
	"unicode"

	"sglaunch/internal/visible"
)

// TestNothingIsForged: what a server or its relay said can neither move the cursor
// of who reads of it nor write a line of ours.
func TestNothingIsForged(t *testing.T) {
	const evil = "\b\b\a\x00\x9b2J\u009b2J\u202egnp\u2066\x7f"
	log := "n" + evil + "1  | [2026-02-19 05:48:02] server_args=ServerArgs(tp_size=2)\n"
	for _, rank := range []string{"TP0", "TP1"} {
		log += "[2026-02-19 05:48:03 " + rank + "] Scheduler hit an exception: Traceback (most recent call last):\n  File \"/x/sglang/a.py\", line 1, in f\n" +
			`{"log":"ValueError: bad` + "\\b\\u009b\\nfailed in serving" + "\u202e" + `\n"}` + "\nRuntimeError: worse" + evil + "\n"
	}
	log += log // an earlier attempt
	r := explainBytes([]byte(log))
	if r.Root == nil || len(r.Echoes) == 0 || len(r.Earlier) == 0 || r.Earlier[0].Root == nil {
		t.Fatalf("too little is told: %+v", r)
	}
	if visible.Line(r.Root.Text) == r.Root.Text {
		t.Errorf("the report itself keeps the text as it is: %q", r.Root.Text)
	}
	var b strings.Builder
	if err := WriteTimeline(&b, r); err != nil {
		t.Fatal(err)
	}
	d, err := Compare(strings.NewReader(log), strings.NewReader(serving), BuiltinRules())
	if err != nil || len(d.Lines) == 0 {
		t.Fatal(d, err)
	}
	if err := WriteDifference(&b, d); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(b.String(), "\n") {
		if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q", line)
		}
	}
	if n := strings.Count(b.String(), "\nfailed in serving"); n > 0 {
		t.Errorf("%d lines of ours are the server's:\n%s", n, b.String())
	}
}
