package shim_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// play is what this binary does as a server.
func play(role string, args []string) int {
	switch role {
	case "flood": // N bytes of everything that a terminal could misread
		n, _ := strconv.Atoi(args[0])
		out := bufio.NewWriterSize(os.Stdout, 64<<10)
		_, _ = io.Copy(out, io.LimitReader(noise(), int64(n)))
		_ = out.Flush()
	case "ticker": // numbered lines until it is told to end
		for i, end := 0, time.Now().Add(lifetime); time.Now().Before(end); i++ {
			fmt.Printf("line %07d of a server that goes on\n", i)
			time.Sleep(200 * time.Microsecond)
		}
	case "both": // standard output and error, turn by turn
		n, _ := strconv.Atoi(args[0])
		for i := range n {
			fmt.Fprintf(os.Stdout, "out %d\n", i)
			fmt.Fprintf(os.Stderr, "err %d\n", i)
		}
	case "deaf": // says so, and ignores every wish to end
		signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
		fmt.Println("deaf")
		time.Sleep(lifetime)
	case "signals": // tells which signals arrive; SIGTERM ends it
		heard := make(chan os.Signal, 8)
		signal.Notify(heard, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH, unix.SIGTERM, unix.SIGQUIT)
		fmt.Println("listening")
		for sig := range heard {
			fmt.Println("heard", sig)
			if sig == unix.SIGTERM {
				return 0
			}
		}
	case "torture":
		return torture(args)
	}
	return 0
}

// noise is an endless stream that looks random and is always the same: every
// byte value, runs of \r and \n, no end of a line for long.
func noise() io.Reader { return &chaos{rand.NewChaCha8([32]byte{7})} }

type chaos struct{ *rand.ChaCha8 }

func (c *chaos) Read(p []byte) (int, error) { return c.ChaCha8.Read(p) }

// lifetime bounds every process that outlives its test, should one fail.
const lifetime = 2 * time.Minute

// torture grows a tree that does everything to survive, says "grown" and waits:
// plain children, children with sessions of their own, double forks, stopped
// ones, wiped environments, all deaf and all holding the terminal. With "wild"
// there are also hoppers, which leave their parent, session and pid behind for
// ever: only who is the parent of orphans can end those.
func torture(args []string) int {
	switch args[0] {
	case "tame", "wild":
	case "hopper":
		return hop(args[1])
	default:
		return torturer(args[0])
	}
	for i := range 40 {
		kind := []string{"plain", "setsid", "double", "stopped", "wiped"}[i%5]
		if err := again(kind == "setsid", kind == "wiped", kind); err != nil {
			fmt.Println("cannot grow:", err)
			return 1
		}
	}
	for range 2 {
		if args[0] == "wild" {
			_ = again(true, true, "hopper", strconv.FormatInt(time.Now().Add(lifetime).Unix(), 10))
		}
	}
	fmt.Println("grown")
	time.Sleep(lifetime)
	return 0
}

// again starts this binary once more.
func again(newSession, wiped bool, args ...string) error {
	cmd := exec.Command(self(), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if wiped {
		cmd.Env = []string{roleVar + "=torture"}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: newSession}
	return cmd.Start()
}

func torturer(kind string) int {
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
	switch kind {
	case "double":
		_ = again(true, false, "plain")
		return 0
	case "stopped":
		_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
	}
	time.Sleep(lifetime)
	return 0
}

func hop(until string) int {
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
	time.Sleep(2 * time.Millisecond)
	if end, _ := strconv.ParseInt(until, 10, 64); time.Now().Unix() < end {
		_ = again(true, true, "hopper", until)
	}
	return 0
}
