package shim

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"sglaunch/internal/proc"
)

// A server that starts processes for ever does not fill the disk, and the
// living are in the file at every moment.
func TestRecordsStayBounded(t *testing.T) {
	self, err := proc.Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "records")
	r := newRecordFile(path, func(text string) { t.Error(text) })
	r.born(self)
	for i := range 3 * recordsKept {
		p := self
		p.PID, p.Start = 1<<29+i, 7
		r.queue <- change{id: p.ID, born: &p} // waits, where born would drop
		r.queue <- change{id: p.ID}
	}
	r.close()
	var records []proc.Record
	for end := time.Now().Add(10 * time.Second); len(records) == 0 || records[len(records)-1].PID != 1<<29+3*recordsKept-1; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d records", len(records))
		}
		if records, err = proc.ReadRecords(path); err != nil {
			t.Fatal(err)
		}
	}
	if len(records) > recordsKept+1 {
		t.Errorf("%d records", len(records))
	}
	found := false
	for _, rec := range records {
		found = found || rec.ID() == self.ID
	}
	if !found {
		t.Error("the living one is missing")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
