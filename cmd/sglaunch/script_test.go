package main

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"sglaunch/internal/proc"
)

// scriptLimit bounds every wait of a script.
const scriptLimit = 60 * time.Second

// waitFor is `waitfor FILE REGEXP`: wait until the file has a line that
// matches. FILE may be a pattern; the newest match counts.
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

// freePortCommand is `freeport NAME`: a free port as a variable.
func freePortCommand(ts *testscript.TestScript, neg bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	defer l.Close()
	ts.Setenv(args[0], strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}

// aliveCommand is `[!] alive`: is any process of the stage alive?
func aliveCommand(ts *testscript.TestScript, neg bool, args []string) {
	marker := "SGLAUNCH_REHEARSAL_STATE=" + ts.Getenv("SGLAUNCH_REHEARSAL_STATE")
	deadline := time.Now().Add(10 * time.Second)
	for {
		left, err := proc.WithMarker(marker)
		ts.Check(err)
		var names []string
		for _, p := range left {
			if !bytes.Contains([]byte(p.Comm), []byte("sglaunch")) && p.PID != os.Getpid() {
				names = append(names, strconv.Itoa(p.PID)+" "+p.Comm)
			}
		}
		if (len(names) > 0) != neg {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("alive: %s", strings.Join(names, ", "))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// signalCommand is `signal NAME PIDFILE-PATTERN-FIELD`: send a signal to the
// process whose number stands in a launch.json's shim, or in a file.
func signalCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: signal SIGNAL PID")
	}
	pid, err := strconv.Atoi(args[1])
	ts.Check(err)
	signals := map[string]syscall.Signal{"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP}
	ts.Check(syscall.Kill(pid, signals[args[0]]))
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
