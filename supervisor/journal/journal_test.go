package journal

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sglaunch/internal/shim/wire"
	"sglaunch/phases"
	"sglaunch/supervisor/machine"
)

var t0 = time.Date(2026, 1, 5, 3, 0, 0, 0, time.UTC)

// script is a short life of a launch, as events.
func script() []machine.Event {
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	return []machine.Event{
		{Seq: 1, At: at(0), Body: machine.Begin{}},
		{Seq: 2, At: at(1), Attempt: 1, Body: machine.Preflighted{}},
		{Seq: 3, At: at(2), Attempt: 1, Body: machine.Patched{Active: []machine.ActivePatch{{Name: "p", Files: []string{"/x/sglang/a.py"}, Proof: "autotune"}}}},
		{Seq: 4, At: at(3), Attempt: 1, Body: machine.Spawned{Proc: wire.Proc{PID: 7, Start: 9}}},
		{Seq: 5, At: at(4), Attempt: 1, Body: machine.Seen{Observation: phases.Observation{Kind: phases.KindPhase, Offset: 117, Phase: phases.LoadingWeights, Rank: "TP0"}}},
		{Seq: 6, At: at(5), Attempt: 1, Roll: 0.25, Body: machine.Exited{Status: wire.Status{Signal: 9}}},
		{Seq: 7, At: at(6), Attempt: 1, Body: machine.Evidence{Dir: "/e"}},
	}
}

func TestJournalRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	options := machine.DefaultOptions()
	options.SGLang = true
	j, err := Create(path, Header{Launch: "x", Time: t0, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	m := newTestMachine(t, options)
	var want []Entry
	for _, e := range script() {
		entry := Entry{Event: e, Effects: m.Step(e)}
		want = append(want, entry)
		j.Add(entry)
	}
	if err := j.Close(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	header, got, torn, err := Read(f)
	if err != nil || torn != 0 {
		t.Fatalf("torn %d, %v", torn, err)
	}
	if diff := cmp.Diff(options, header.Options); diff != "" {
		t.Errorf("options changed on the way: %s", diff)
	}
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d", len(got), len(want))
	}
	for i := range got {
		if !sameEffects(got[i].Effects, want[i].Effects) || got[i].Event.Seq != want[i].Event.Seq {
			t.Errorf("entry %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}

// A journal replayed by the code that wrote it decides the same.
func TestReplayDecidesTheSame(t *testing.T) {
	path := writeScript(t)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	steps := 0
	differences, torn, err := Replay(f, func(Entry, machine.State) { steps++ })
	if err != nil || torn != 0 || len(differences) != 0 || steps != len(script()) {
		t.Fatalf("steps %d, torn %d, differences %v, %v", steps, torn, differences, err)
	}
}

// What a decision tells in a struct is the same when it comes out of the journal.
func TestReplayOfAStructDecidesTheSame(t *testing.T) {
	left := machine.TreeLeft{Procs: []wire.Proc{{PID: 7, Start: 9, PPID: 1, Comm: "python", Cmd: "python -m sglang", State: "D"}}}
	data, err := os.ReadFile(writeEvents(t, append(script(), machine.Event{Seq: 8, At: t0.Add(7 * time.Second), Attempt: 1, Body: left})))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), `"processes":[`) {
		t.Fatal("the processes were not told:", string(data))
	}
	if differences, _, err := Replay(strings.NewReader(string(data)), nil); err != nil || len(differences) != 0 {
		t.Errorf("differences %v, %v", differences, err)
	}
}

// A journal whose decisions were others is told, step by step.
func TestReplayTellsDifferences(t *testing.T) {
	path := writeScript(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(data), `"effect":"spawn"`, `"effect":"revert_patch"`, 1)
	differences, _, err := Replay(strings.NewReader(changed), nil)
	if err != nil || len(differences) != 1 || differences[0].Event.Seq != 3 {
		t.Fatalf("differences %v, %v", differences, err)
	}
}

// Where a line is missing, that is told, and not what it makes of the rest.
func TestReplayTellsAGap(t *testing.T) {
	data, err := os.ReadFile(writeScript(t))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	for missing := 1; missing < len(script()); missing++ { // the header is line 0; after the last line nothing misses it
		cut := strings.Join(append(append([]string{}, lines[:missing]...), lines[missing+1:]...), "")
		differences, torn, err := Replay(strings.NewReader(cut), nil)
		if err != nil || torn != 0 || len(differences) != 1 {
			t.Fatalf("without line %d: differences %v, torn %d, %v", missing, differences, torn, err)
		}
		if d := differences[0]; int(d.Event.Seq) != missing+1 || !strings.Contains(d.String(), "the journal has a gap: 1 entries before this one") {
			t.Errorf("without line %d: %s", missing, d)
		}
	}
}

// Lines torn by a sudden death are left out; what stands before and after counts.
func TestJournalTornLines(t *testing.T) {
	path := writeScript(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cut := data[:len(data)-20]
	_, entries, torn, err := Read(strings.NewReader(string(cut)))
	if err != nil || torn != 1 || len(entries) != len(script())-1 {
		t.Fatalf("entries %d, torn %d, %v", len(entries), torn, err)
	}
	if err := os.WriteFile(path, cut, 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := Append(path)
	if err != nil {
		t.Fatal(err)
	}
	j.Add(Entry{Event: machine.Event{Seq: 8, At: t0, Body: machine.Tick{}}})
	if err := j.Close(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	data, err = os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, entries, torn, err = Read(strings.NewReader(string(data)))
	if err != nil || torn != 1 || len(entries) != len(script()) {
		t.Fatalf("after going on: entries %d, torn %d, %v", len(entries), torn, err)
	}
}

// Folding a journal brings a machine to the state that the old one had.
func TestFoldRestoresTheMachine(t *testing.T) {
	options := machine.DefaultOptions()
	options.SGLang = true
	live, folded := newTestMachine(t, options), newTestMachine(t, options)
	var entries []Entry
	for _, e := range script() {
		entries = append(entries, Entry{Event: e, Effects: live.Step(e)})
	}
	seen, last := Fold(folded, Seen{}, entries)
	if seen.Count[1] != 1 || seen.To[1] != 117 || last != 7 {
		t.Errorf("seen %v, last %d", seen, last)
	}
	a, _ := live.Deadline()
	b, _ := folded.Deadline()
	if live.State() != folded.State() || !a.Equal(b) || live.Attempt() != folded.Attempt() {
		t.Errorf("state %s %s, deadline %s %s", live.State(), folded.State(), a, b)
	}
}

func FuzzReadJournal(f *testing.F) {
	f.Add(`{"v":1,"options":{}}` + "\n" + `{"step":{"seq":1,"event":"tick"}}`)
	f.Add("")
	f.Add(`{"v":1}` + "\n" + `{"step":{"event":"seen","body":[]}}` + "\n\n{")
	f.Fuzz(func(t *testing.T, text string) {
		_, _, _, _ = Read(strings.NewReader(text))
	})
}

func newTestMachine(t *testing.T, o machine.Options) *machine.Machine {
	t.Helper()
	m, err := machine.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func writeScript(t *testing.T) string {
	t.Helper()
	return writeEvents(t, script())
}

func writeEvents(t *testing.T, events []machine.Event) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	options := machine.DefaultOptions()
	options.SGLang = true
	j, err := Create(path, Header{Launch: "x", Time: t0, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	m := newTestMachine(t, options)
	for _, e := range events {
		j.Add(Entry{Event: e, Effects: m.Step(e)})
	}
	if err := j.Close(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	return path
}

// A supervisor that dies, or meets a full disk, while it begins the journal leaves
// none that the next one could not read; and none is begun twice.
func TestJournalIsBegunWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	if _, err := Create(path, Header{Snapshot: json.RawMessage("{")}); err == nil {
		t.Fatal("a header that cannot be written began a journal")
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what could not be begun is there: %v", err)
	}
	j, err := Create(path, Header{Launch: "x", Time: t0, Options: machine.DefaultOptions()})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path, Header{Launch: "y"}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a journal was begun over another: %v", err)
	}
	if header, _ := readJournalFile(t, path); header.Launch != "x" {
		t.Errorf("the journal is now that of %q", header.Launch)
	}
}

// A journal that goes on in a new file: what was before is in its first line,
// and whoever folds or replays the new file alone knows and decides the same.
func TestJournalRotates(t *testing.T) {
	for cut := range script() {
		path := filepath.Join(t.TempDir(), "journal.jsonl")
		options := machine.DefaultOptions()
		options.SGLang = true
		j, err := Create(path, Header{Launch: "x", Time: t0, Options: options})
		if err != nil {
			t.Fatal(err)
		}
		live := newTestMachine(t, options)
		for i, e := range script() {
			if i == cut {
				snapshot, err := live.Snapshot()
				if err != nil {
					t.Fatal(err)
				}
				if !j.Rotate(Header{Time: e.At, Options: options, Snapshot: snapshot, Seen: Seen{Count: map[int]int{1: 5}}}) {
					t.Fatal("the order was not taken")
				}
			}
			j.Add(Entry{Event: e, Effects: live.Step(e)})
		}
		if err := j.Close(10 * time.Second); err != nil {
			t.Fatal(err)
		}
		header, entries := readJournalFile(t, path)
		if len(entries) != len(script())-cut {
			t.Fatalf("cut at %d: %d entries in the new file", cut, len(entries))
		}
		if _, old := readJournalFile(t, path+".1"); len(old) != cut {
			t.Fatalf("cut at %d: %d entries in the old file", cut, len(old))
		}
		folded, err := header.Machine()
		if err != nil {
			t.Fatal(err)
		}
		seen, _ := Fold(folded, header.Seen, entries)
		a, errA := live.Snapshot()
		b, errB := folded.Snapshot()
		if errA != nil || errB != nil || string(a) != string(b) || seen.Count[1] < 5 {
			t.Errorf("cut at %d: live %s\nfolded %s\nseen %v", cut, a, b, seen)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		differences, _, err := Replay(f, nil)
		_ = f.Close()
		if err != nil || len(differences) > 0 {
			t.Errorf("cut at %d: %v, %v", cut, differences, err)
		}
	}
}

func readJournalFile(t *testing.T, path string) (Header, []Entry) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	header, entries, torn, err := Read(f)
	if err != nil || torn > 0 {
		t.Fatalf("%s: torn %d, %v", path, torn, err)
	}
	return header, entries
}
