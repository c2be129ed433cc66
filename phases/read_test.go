package phases

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// openBytes explains a file of these bytes.
func openBytes(t *testing.T, content []byte) Report {
	t.Helper()
	path := filepath.Join(t.TempDir(), "server.log.gz")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	report, err := Read(file, BuiltinRules())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestDamagedGzip: what a cut or damaged file still holds is explained, it is
// said that more is missing, and the last line there is not taken for the end.
func TestDamagedGzip(t *testing.T) {
	log := serving + strings.Repeat("[2026-02-19 05:48:03 TP0] Decode batch, #running-req: 3, #token: 7\n", 50_000) +
		"RuntimeError: CUDA error: out of memory\n"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(log)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	whole := packed.Bytes()
	if r := openBytes(t, whole); r.Cut != "" || !r.Failed {
		t.Errorf("the whole file: failed %t, cut %q", r.Failed, r.Cut)
	}
	if r := openBytes(t, whole[:len(whole)/2]); r.Cut != "the gzip file is cut short" || !r.Ready || r.Failed || r.Lines < 1000 || r.Lines > 50_000 {
		t.Errorf("half of it: %+v", r)
	}
	if r := openBytes(t, whole[:len(whole)-4]); r.Cut == "" || r.Failed || r.Lines != 50_005 {
		t.Errorf("without its end: failed %t, cut %q, %d lines", r.Failed, r.Cut, r.Lines)
	}
	broken := bytes.Clone(whole)
	broken[len(broken)-6] ^= 1
	if r := openBytes(t, broken); r.Cut != "the gzip file is damaged" {
		t.Errorf("with a wrong sum: cut %q", r.Cut)
	}
}

// TestNothingRecognised: text of something else is in no phase and has no ranks.
func TestNothingRecognised(t *testing.T) {
	data, err := json.Marshal(explainBytes([]byte("hello\nworld <3\n")))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"phase":null,`, `"ranks":{}`, `"lines":2`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s has no %s", data, want)
		}
	}
}
