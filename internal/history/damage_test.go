package history

import (
	"os"
	"path/filepath"
	"testing"
)

// Whatever a disk made of the file: it opens, or it is set aside, and records
// are taken or refused; nothing panics and nothing is lost silently.
func FuzzADatabaseWithABadStretch(f *testing.F) {
	path := filepath.Join(f.TempDir(), "sound.db")
	fill(f, path)
	sound, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), uint16(16), byte(0))
	f.Add(uint32(18), uint16(2), byte(0xff))     // the version of the file format
	f.Add(uint32(100), uint16(8), byte(0))       // the schema's root page
	f.Add(uint32(4096), uint16(4096), byte(0))   // a whole page
	f.Add(uint32(8192+8), uint16(64), byte(0x7)) // pointers within one
	f.Add(uint32(len(sound)-10), uint16(10), byte(1))
	f.Fuzz(func(t *testing.T, at uint32, length uint16, value byte) {
		path := testPath(t)
		bad := append([]byte(nil), sound...)
		for i := int(at) % len(bad); i < min(int(at)%len(bad)+int(length), len(bad)); i++ {
			bad[i] = value
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := Open(t.Context(), path)
		if err != nil {
			return // said, and the file is where it was
		}
		defer db.Close()
		_, readErr := db.Launches(t.Context(), "", 10)
		writeErr := db.RecordAttempt(t.Context(), "l2", fullAttempt(1))
		if db.Aside != "" && (readErr != nil || writeErr != nil) {
			t.Errorf("the new database: %v, %v", readErr, writeErr)
		}
	})
}
