package main

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptLimit bounds every wait of a script.
const scriptLimit = 60 * time.Second

// waitFor is `waitfor FILE REGEXP`: wait until the file has a line that
// matches.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: waitfor FILE REGEXP")
	}
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	deadline := time.Now().Add(scriptLimit)
	for time.Now().Before(deadline) {
		if data, err := os.ReadFile(ts.MkAbs(args[0])); err == nil && re.Match(data) {
			return
		}
		time.Sleep(20 * time.Millisecond) // the pause of a poll, not a guess at how long it takes
	}
	data, _ := os.ReadFile(ts.MkAbs(args[0]))
	ts.Fatalf("%s never matched %q; it holds:\n%s", args[0], args[1], tail(data))
}

func tail(data []byte) []byte {
	const most = 4000
	if len(data) > most {
		return data[len(data)-most:]
	}
	return data
}

// exitCodeCommand is `exitcode N COMMAND ...`: the command ends with N. Exit
// codes are an interface; exec tells zero from the rest only.
func exitCodeCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N COMMAND ...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
