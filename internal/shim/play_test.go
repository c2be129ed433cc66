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
		for i := 0; ; i++ {
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
		select {}
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

// torture grows a tree that does everything to survive, says "grown" and waits.
//
//	members  plain children, children with sessions and groups of their own,
//	         double forks, ignored signals, stopped ones, wiped environments
//	bombs    processes that fork and end for ever, one of them into new sessions
func torture(args []string) int {
	if len(args) > 0 && args[0] != "grow" {
		return torturer(args[0])
	}
	for i := range 40 {
		kind := []string{"plain", "setsid", "double", "stopped", "wiped"}[i%5]
		if err := again(kind, i%5 == 1); err != nil {
			fmt.Println("cannot grow:", err)
			return 1
		}
	}
	for range 2 {
		_ = again("hopper", true)
	}
	fmt.Println("grown")
	select {}
}

// again starts this binary once more.
func again(kind string, newSession bool) error {
	cmd := exec.Command(self(), kind)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr // all hold the terminal
	cmd.Env = os.Environ()
	if kind == "wiped" || kind == "hopper" {
		cmd.Env = []string{roleVar + "=torture"}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: newSession}
	return cmd.Start()
}

func torturer(kind string) int {
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
	switch kind {
	case "double":
		_ = again("plain", true)
		return 0
	case "stopped":
		_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
	case "hopper":
		// Leaves its session, its parent and its pid behind, again and again.
		time.Sleep(2 * time.Millisecond)
		_ = again("hopper", true)
		return 0
	}
	select {}
}
