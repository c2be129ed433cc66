package tune

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

// journal is a night of every kind of record, one a line.
func journal(t tester) []byte {
	w := newWorld(t, 3, 4)
	w.kills = 0.1
	w.fails = func(w *world, t Trial) (Ended, bool) {
		return Ended{Outcome: "crashed", Cause: "oom_kv_cache"}, t.Name == "--x v3"
	}
	w.night()
	var b bytes.Buffer
	for _, r := range w.records {
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(data, '\n'))
	}
	return b.Bytes()
}

// FuzzFold: whatever stands in a journal, reading it ends, and a night that
// takes it knows what to do next.
func FuzzFold(f *testing.F) {
	night := journal(f)
	f.Add(night)
	f.Add(bytes.Replace(night, []byte(`"launch":2`), []byte(`"launch":-7`), 1))
	f.Add(bytes.Replace(night, []byte(`"evidence":`), []byte(`"evidence":9`), 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, at := &Night{}, evening
		for line := range bytes.Lines(data) {
			var r Record
			if json.Unmarshal(line, &r) != nil {
				continue
			}
			r.Seq = n.Seq()
			if n.Add(r) != nil {
				continue
			}
			at = r.At
			if n.Next(at) == nil {
				t.Fatalf("after record %d there is nothing to do", r.Seq)
			}
		}
		for range 100 { // notes follow each other only so far
			note, ok := n.Next(at.Add(time.Hour)).(Note)
			if !ok {
				return
			}
			if err := n.Add(Record{n.Seq(), at, note.Body}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestRecordsThatCannotBe(t *testing.T) {
	plan := func(a *actor) { a.study.Axes["--a"] = axisOf(1); a.plan() }
	tests := []struct {
		name string
		then func(*actor)
		body Body
		want string
	}{
		{"no plan", func(*actor) {}, Resumed{}, "cannot use record 1 of the night: a night begins with its plan"},
		{"a newer plan", func(*actor) {}, Planned{Version: RecordVersion + 1}, "newer sglaunch (version 2, this one knows up to 1)"},
		{"no baseline", func(*actor) {}, Planned{Version: 1}, "its trials are not the baseline"},
		{"less than no time", func(*actor) {}, Planned{Version: 1, Trials: []Trial{{ID: BaselineID}}, Expect: Estimate{Load: -1}}, "less than no time"},
		{"a study that is none", func(*actor) {}, Planned{Version: 1, Trials: []Trial{{ID: BaselineID}}}, "cannot use name"},
		{"an end without a launch", plan, Ended{Launch: 1}, "launch 1 is not open"},
		{"a launch that is left out", plan, Intended{Launch: 2}, "launch 1 has to follow, not 2"},
		{"evidence that is none", plan, Skipped{Evidence: 3}, "there is no launch 3"},
		{"two at once", func(a *actor) { plan(a); _, _ = a.begin() }, Intended{Launch: 2}, "launch 1 has not ended"},
		{"after the end", func(a *actor) { plan(a); a.write(Done{}) }, Resumed{}, "the night is over"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newActor(t)
			tt.then(a)
			err := a.n.Add(Record{a.n.Seq(), a.now, tt.body})
			if err == nil || !bytes.Contains([]byte(err.Error()), []byte(tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	a := newActor(t)
	plan(a)
	if err := a.n.Add(Record{a.n.Seq() + 1, a.now, Resumed{}}); err == nil {
		t.Error("a record is left out, and nobody says so")
	}
}
