package patch

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func someRecords() []record {
	owner := someOwner
	e := func(path string) *entry { return &entry{Path: path, Before: "b", After: "a", Written: 7e9} }
	return []record{
		{Kind: recApply, Owner: &owner, Entries: []*entry{e("/x"), e("/y")}, Paths: []string{"/x", "/y"}},
		{Kind: recApplied, Launch: owner.Launch},
		{Kind: recRestored, Path: "/x"},
		{Kind: recDrifted, Path: "/y"},
		{Kind: recReleased, Launch: owner.Launch},
		{Kind: recApply, Owner: &owner, Entries: []*entry{e("/z")}, Paths: []string{"/z"}},
	}
}

func journalText(t *testing.T, records []record) (text []byte, ends []int) {
	t.Helper()
	for _, r := range records {
		line, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, line...)
		ends = append(ends, len(text))
	}
	return text, ends
}

var sameBook = cmp.Options{cmpopts.EquateEmpty(), cmp.AllowUnexported(book{}, inode{})}

// Cut off anywhere, a journal reads as its whole lines.
func TestTornJournal(t *testing.T) {
	t.Parallel()
	text, ends := journalText(t, someRecords())
	for cut := range len(text) {
		b, size, n, err := fold(text[:cut])
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		want := newBook()
		for i, r := range someRecords() {
			if ends[i] <= cut {
				want.add(r)
			}
		}
		if diff := cmp.Diff(want, b, sameBook); diff != "" {
			t.Fatalf("cut at %d, %d records, %d bytes:\n%s", cut, n, size, diff)
		}
	}
}

// Damage before the end is no torn line: what it said is lost, so we stop.
func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	text, ends := journalText(t, someRecords())
	for at := range ends[len(ends)-2] - 1 { // its newline joins it to the last one, which then is torn
		bad := bytes.Clone(text)
		bad[at] ^= 1
		if _, _, _, err := fold(bad); err == nil {
			t.Fatalf("damage at %d is not seen", at)
		}
	}
	l := ledger(t)
	if err := os.WriteFile(l.path(journalName), append([]byte("garbage\n"), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Recover(t.Context(), dead); err == nil {
		t.Error("a ledger with a damaged journal recovers")
	}
}

// A journal that grew long is one record again and says the same.
func TestCompactJournal(t *testing.T) {
	t.Parallel()
	l := ledger(t)
	j, err := openJournal(l.disk, l.path(journalName))
	if err != nil {
		t.Fatal(err)
	}
	for j.records < maxRecords {
		for _, r := range someRecords() {
			if err := j.add(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := j.compact(time.Now()); err != nil {
		t.Fatal(err)
	}
	again, err := openJournal(l.disk, l.path(journalName))
	if err != nil {
		t.Fatal(err)
	}
	if again.records != 1 {
		t.Errorf("%d records", again.records)
	}
	if diff := cmp.Diff(j.book, again.book, sameBook); diff != "" {
		t.Error(diff)
	}
	if err := again.add(someRecords()[2]); err != nil {
		t.Error(err)
	}
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"kind":"apply","owner":{"launch":"x"},"entries":[{"path":"/x"}]}`))
	f.Add([]byte(`{"kind":"snapshot","book":{"entries":{},"leases":{},"drifts":{},"used":{}}}`))
	f.Add([]byte(`{"kind":"snapshot","book":{}}`))
	f.Add([]byte(`{"kind":"apply","owner":{},"entries":[null]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		line := append([]byte(Hash(body)[:sumDigits]+" "), body...)
		text, _ := journalText(t, someRecords())
		_, _, _, _ = fold(append(append(line, '\n'), text...))
		_, _, _, _ = fold(body)
	})
}
