package main

import (
	"errors"
	"strings"
	"testing"

	"sglaunch/internal/config"
	"sglaunch/internal/visible"
	"sglaunch/patch"
)

// evil are words that want to be obeyed by a terminal, or taken for ours.
const evil = "x\x1b[2J\r\nsglaunch: ready\u202e"

// Whatever a patch, a package or a path is called, and whatever is in a file, what
// is printed of it is lines of ours; what cannot be seen in the file is shown.
func TestPatchesAreNotObeyed(t *testing.T) {
	var b strings.Builder
	out := palette{w: &b}
	p := &patch.Plan{Targets: []patch.Target{{
		Patch: evil, Path: evil, Package: evil, Version: evil, Reason: evil, Hint: evil, Notes: []string{evil},
		Diff: "--- a\n+++ b\n+\tif admin:\u202e # \x1b[1A\n",
	}}}
	p.Interpreter.Python = evil
	if err := printPlan(out, p, request{}); err != nil {
		t.Fatal(err)
	}
	if err := printHeld(&b, []patch.Held{{Path: evil, Patches: []string{evil}, Original: evil, State: patch.Drifted}}); err != nil {
		t.Fatal(err)
	}
	printReverted(&b, &patch.Reverted{Restored: []string{evil}})
	if err := printApplied(&b, &patch.Applied{Files: []string{evil}}); err != nil {
		t.Fatal(err)
	}
	const diff = "    +\tif admin:\\u202e # \\x1b[1A\n"
	text := strings.Replace(b.String(), diff, "", 1)
	if text == b.String() {
		t.Error("what cannot be seen in the file is not shown")
	}
	if text != visible.Lines(text) || strings.Contains(text, "\nsglaunch: ready") {
		t.Errorf("it prints %q", text)
	}
}

// An error is told on lines of ours, whatever it quotes.
func TestErrorsAreNotObeyed(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&exitError{1, errors.New("it said: " + evil), "read " + evil}, "sglaunch: it said: x[2J \n  sglaunch: ready\nsglaunch: hint: read x[2J  sglaunch: ready\n"},
		{errors.New("its last words:\none\ntwo\n"), "sglaunch: its last words:\n  one\n  two\n"},
		{config.Errors{config.NewError("base", nil, "%s", evil)}, "sglaunch: cannot use base: x[2J \n  sglaunch: ready\n"},
	} {
		var b strings.Builder
		if printError(&b, tt.err); b.String() != tt.want {
			t.Errorf("%q is told as %q, want %q", tt.err, b.String(), tt.want)
		}
	}
}
