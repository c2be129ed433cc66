package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"sglaunch/phases"
)

const outputText = "[2026-01-05 03:00:00] server_args=ServerArgs(tp_size=2)\n"

func inUTF16(t *testing.T, order binary.AppendByteOrder) string {
	t.Helper()
	var b []byte
	for _, unit := range utf16.Encode([]rune("\ufeff" + outputText)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

func inArchive(t *testing.T, write func(w io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestOtherThanOutput: an output that lies in another form in its file is refused
// with the command that unwraps it, alone and as one of two to compare.
func TestOtherThanOutput(t *testing.T) {
	zipped := inArchive(t, func(w io.Writer) error {
		z := zip.NewWriter(w)
		f, err := z.Create("server.log")
		if err != nil {
			return err
		}
		_, err = io.WriteString(f, outputText)
		return errors.Join(err, z.Close())
	})
	tarred := inArchive(t, func(w io.Writer) error {
		a := tar.NewWriter(w)
		err := a.WriteHeader(&tar.Header{Name: "server.log", Mode: 0o600, Size: int64(len(outputText))})
		_, wrong := io.WriteString(a, outputText)
		return errors.Join(err, wrong, a.Close())
	})
	dir := t.TempDir()
	good := filepath.Join(dir, "good.log")
	if err := os.WriteFile(good, []byte(outputText), 0o600); err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]string{
		// What the tools make of a file begins so.
		"\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4F\x02\x00!\x01":         "xz -dc",
		"(\xb5/\xfd$8\xc1\x01\x00[2026-01-05 03:00:00] server":   "zstd -dc",
		"BZh91AY&SY\x02x\xb6\x0b\x00\x00\x0e_\x80\x00\x10@":      "bzip2 -dc",
		"\x04\"M\x18d@\xa78\x00\x00\x80[2026-01-05 03:00:00] se": "lz4 -dc",
		zipped:                            "unzip -p",
		tarred:                            "tar -xOf",
		inUTF16(t, binary.LittleEndian):   "iconv -f UTF-16",
		inUTF16(t, binary.BigEndian):      "iconv -f UTF-16",
		`{"v":1,"launch":"x","options":{`: "sglaunch replay",
	} {
		path := filepath.Join(dir, "server.log")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, o := range []explainOptions{{}, {against: good}} {
			read := explain
			if o.against != "" {
				read = explainAgainst
			}
			err := read(io.Discard, []string{path}, phases.BuiltinRules(), o)
			var exit *exitError
			if !errors.As(err, &exit) || exit.code != exitUsage || !strings.HasPrefix(exit.hint, want) {
				t.Errorf("%.20q: %v, want advice to use %s", content, err, want)
			}
		}
	}
	for _, text := range []string{outputText, "\ufeff" + outputText, "", "x", "BZh91", "PK", "ustar"} {
		if err := os.WriteFile(good, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := explain(io.Discard, []string{good}, phases.BuiltinRules(), explainOptions{}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
