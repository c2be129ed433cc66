package preflight

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnrunnable: what is said to run runs, what is said not to does not, and why
// is said.
func TestUnrunnable(t *testing.T) {
	program, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Clone(program)
	other[18], other[19] = 0x15, 0 // PowerPC
	dir := t.TempDir()
	for name, c := range map[string]struct{ content, why, advice string }{
		"program":  {string(program), "", ""},
		"script":   {"#!/bin/sh\nexit 0\n", "", ""},
		"blanks":   {"#! \t/bin/sh\nexit 0\n", "", ""},
		"options":  {"#!/usr/bin/env sh\nexit 0\n", "", ""},
		"no-end":   {"#!/bin/sh", "", ""},
		"crlf":     {"#!/bin/sh\r\nexit 0\r\n", `ends in CR LF, so that its interpreter is "/bin/sh\r"`, "sed"},
		"crlf-env": {"#!/usr/bin/env sh\r\nexit 0\r\n", `its interpreter is "sh\r"`, "sed"},
		"moved":    {"#!/gone/venv/bin/python\n", `wants the interpreter "/gone/venv/bin/python"`, "virtual environment"},
		"nameless": {"#!\nexit 0\n", "names no interpreter", "#!/bin/sh"},
		"no-line":  {"exit 0\n", "has no #! line", "sh " + dir},
		"mark":     {"\xef\xbb\xbf#!/bin/sh\nexit 0\n", "byte order mark", "UTF-8"},
		"empty":    {"", "is empty", "again"},
		"cut":      {string(program[:100]), "damaged program", "again"},
		"cut-head": {string(program[:20]), "damaged program", "again"},
		"letters":  {"\x7fELF", "damaged program", "again"},
		"junk":     {"\x7fELFgarbage", "damaged program", "again"},
		"other":    {string(other), "for another machine (EM_PPC64)", "install"},
		"bytes":    {"\x00\x01\x02\x03", "neither a program nor a script", "again"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(c.content), 0o700); err != nil {
				t.Fatal(err)
			}
			if (name == "other" || name == "bytes") && registeredFormats() {
				c.why, c.advice = "", "" // something may run it here
			} else if err := exec.Command(path).Run(); (err != nil) != (c.why != "") {
				t.Errorf("run: %v", err)
			}
			why, advice := unrunnable(path)
			if !strings.Contains(why, c.why) || (why == "") != (c.why == "") || !strings.Contains(advice, c.advice) {
				t.Errorf("got %q, %q, want %q, %q", why, advice, c.why, c.advice)
			}
		})
	}
}
