// Command ptycopy is the least that a launcher of a server can do: it runs a
// command under a pty and copies what that prints to standard output. It is the
// measure for bench/live.sh. At its end it says on standard error how many
// seconds of CPU the copy took, without the command.
//
//	ptycopy [-track] COMMAND ...
//
// With -track the output is read for its meaning as well, in stretches as a
// supervisor gets them.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"sglaunch/phases"
)

func main() {
	track := flag.Bool("track", false, "read the output for its meaning as well")
	flag.Parse()
	if err := run(flag.Args(), *track); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(argv []string, track bool) error {
	if len(argv) == 0 {
		return errors.New("cannot copy the output of nothing: give a command")
	}
	server := exec.Command(argv[0], argv[1:]...)
	terminal, err := pty.Start(server)
	if err != nil {
		return fmt.Errorf("cannot start %q: %w", argv[0], err)
	}
	if _, err := term.MakeRaw(int(terminal.Fd())); err != nil {
		return fmt.Errorf("cannot set up the terminal: %w", err)
	}
	var from io.Reader = terminal
	if track {
		stretches := bufio.NewWriterSize(reader{phases.NewTracker(phases.BuiltinRules())}, 64<<10)
		defer stretches.Flush()
		from = io.TeeReader(terminal, stretches)
	}
	before, err := used()
	if err != nil {
		return err
	}
	// The end of a terminal reads as an error.
	if _, err := io.Copy(os.Stdout, from); err != nil && !errors.Is(err, syscall.EIO) {
		return fmt.Errorf("cannot copy the output: %w", err)
	}
	if err := server.Wait(); err != nil {
		return fmt.Errorf("cannot run %q: %w", argv[0], err)
	}
	after, err := used()
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%.3f\n", (after - before).Seconds())
	return nil
}

// used is the CPU time of this process so far.
func used() (time.Duration, error) {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0, fmt.Errorf("cannot tell the time taken: %w", err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), nil
}

// reader feeds a tracker with what is written to it.
type reader struct{ tracker *phases.Tracker }

func (r reader) Write(p []byte) (int, error) {
	r.tracker.Feed(p)
	return len(p), nil
}
