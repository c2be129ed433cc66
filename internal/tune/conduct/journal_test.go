package conduct

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func appendAll(t interface{ Fatal(...any) }, j *Journal, from, to int) {
	for i := from; i < to; i++ {
		if err := j.Append(map[string]any{"n": i, "text": "<&>\n\u2028 \"quoted\""}); err != nil {
			t.Fatal(err)
		}
	}
}

func numbers(records []json.RawMessage) (all []int) {
	for _, r := range records {
		var v struct{ N int }
		if json.Unmarshal(r, &v) != nil {
			v.N = -1
		}
		all = append(all, v.N)
	}
	return all
}

// Whatever is left of the last line, all records before it are there, and the
// journal goes on behind them.
func TestTornTailIsCut(t *testing.T) {
	dir := t.TempDir()
	j, _, _, err := OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, j, 0, 3)
	before := j.end
	appendAll(t, j, 3, 4)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, journalName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for keep := int(before); keep < len(whole); keep += 1 + (keep*7)%11 { // each costs a write to disk
		if err := os.WriteFile(path, whole[:keep], 0o600); err != nil {
			t.Fatal(err)
		}
		j, records, cut, err := OpenJournal(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := numbers(records); !slices.Equal(got, []int{0, 1, 2}) || cut != keep-int(before) {
			t.Fatalf("with %d bytes of the last line: records %v, %d cut", keep-int(before), got, cut)
		}
		appendAll(t, j, 7, 8)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if records, err := ReadJournal(dir); err != nil || !slices.Equal(numbers(records), []int{0, 1, 2, 7}) {
			t.Fatalf("after going on: %v %v", numbers(records), err)
		}
	}
}

// A byte that changed is found, wherever it is: in the last line the record is
// dropped, before it the journal is refused. No record is ever another than the
// one that was written.
func TestDamageIsFound(t *testing.T) {
	dir := t.TempDir()
	j, _, _, err := OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, j, 0, 3)
	_ = j.Close()
	path := filepath.Join(dir, journalName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	good, _, err := parseJournal(whole)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		data := slices.Clone(whole)
		at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
		data[at] ^= rapid.Byte().Filter(func(b byte) bool { return b != 0 }).Draw(t, "flip")
		records, _, err := parseJournal(data)
		if err != nil && !errors.Is(err, errDamaged) {
			t.Fatal(err)
		}
		for i, r := range records {
			if string(r) != string(good[i]) {
				t.Fatalf("record %d became %s", i, r)
			}
		}
	})
}

// Two tuners never work on one study.
func TestOneTunerAtATime(t *testing.T) {
	dir := t.TempDir()
	j, _, _, err := OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := OpenJournal(dir); !errors.Is(err, ErrRunning) {
		t.Fatalf("the second got %v", err)
	}
	appendAll(t, j, 0, 1)
	if records, err := ReadJournal(dir); err != nil || len(records) != 1 {
		t.Errorf("while it runs: %v %v", records, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, records, _, err := OpenJournal(dir)
	if err != nil || len(records) != 1 {
		t.Fatalf("afterwards: %v %v", records, err)
	}
	_ = j.Close()
	info, err := os.Stat(filepath.Join(dir, journalName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// A record that could not be written leaves no half of it behind.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	j, _, _, err := OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	appendAll(t, j, 0, 1)
	if err := j.Append(map[string]string{"text": string(make([]byte, recordMost))}); err == nil {
		t.Fatal("a record of 4 MiB was taken")
	}
	if err := j.Append(func() {}); err == nil {
		t.Fatal("a function was taken")
	}
	path := filepath.Join(dir, journalName)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	file := j.file
	if j.file, err = os.Open(path); err != nil { // a descriptor that cannot be written to, as a disk that fails
		t.Fatal(err)
	}
	if err := j.Append(map[string]int{"n": 1}); err == nil {
		t.Fatal("a write that failed was not told")
	}
	_ = j.file.Close()
	j.file = file
	appendAll(t, j, 2, 3)
	records, err := ReadJournal(dir)
	if err != nil || fmt.Sprint(numbers(records)) != "[0 2]" {
		t.Errorf("%v %v", numbers(records), err)
	}
}

func FuzzParseJournal(f *testing.F) {
	raw := json.RawMessage(`{"n":1}`)
	text, _ := json.Marshal(line{Sum: sum(raw), Record: raw})
	f.Add(append(text, '\n'))
	f.Add([]byte("\n\n{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		records, whole, err := parseJournal(data)
		if err == nil && (whole > len(data) || whole > 0 && data[whole-1] != '\n') {
			t.Errorf("%d records end at %d of %d", len(records), whole, len(data))
		}
	})
}
