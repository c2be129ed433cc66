package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sglaunch/internal/gpu"
	"sglaunch/internal/shim/wire"
	"sglaunch/supervisor"
	"sglaunch/supervisor/machine"
)

// The two processes that the shim and the supervisor start for themselves.
const (
	supervisorCommand = "__supervisor"
	samplerCommand    = "__gpu-sampler"
)

// onOutput is supervisor.Setup.OnOutput; only tests set it.
var onOutput func([]byte)

func newSupervisorCommand() *cobra.Command {
	var flags launchFlags
	c := &cobra.Command{
		Use: supervisorCommand, Hidden: true, Args: argsAfterDash,
		RunE: func(c *cobra.Command, args []string) error {
			unmoved()
			conn, err := shimConn()
			if err != nil {
				return err
			}
			hello, err := supervisor.Greet(conn)
			if err != nil {
				return err
			}
			setup, options, err := setUp(&flags, args, hello.Ledger)
			switch {
			case err != nil && hello.Launch != nil:
				return err // there is a server: it is kept, whatever became of its configuration
			case err != nil:
				return endLaunch(conn, exitConfig, err)
			}
			setup.OnOutput = onOutput
			err = supervisor.Serve(conn, hello, setup, options)
			switch {
			case hello.Attempt > 0: // there may be a server to keep
			case errors.Is(err, supervisor.ErrAlreadyRunning):
				return endLaunch(conn, exitRunning, err)
			case errors.Is(err, supervisor.ErrNoRecords):
				return endLaunch(conn, exitConfig, err)
			}
			return err
		},
	}
	flags.register(c)
	return c
}

// unmoved keeps a process of sglaunch's own from ending by what is no word to it:
// standard error breaks when the shim dies, which is when there is most to do;
// Slurm and container engines send their signals to every process, and it is the
// shim that hears them. A handler, unlike ignoring, is not passed on to the
// processes that are started from here.
func unmoved() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
}

// shimConn takes the descriptor that the shim left for us.
func shimConn() (*wire.Conn, error) {
	f := os.NewFile(wire.FD, "shim")
	if f == nil {
		return nil, errors.New("cannot be called by hand: sglaunch run starts it")
	}
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("cannot be called by hand: sglaunch run starts it (%w)", err)
	}
	unix.CloseOnExec(wire.FD)
	_ = f.Close()
	return wire.NewConn(conn), nil
}

// endLaunch tells a person why there is no launch, and the shim the exit code.
func endLaunch(conn *wire.Conn, code int, err error) error {
	if sendErr := conn.Send(wire.Message{Type: wire.Print, Text: "sglaunch: " + err.Error()}); sendErr != nil {
		return sendErr
	}
	return conn.Send(wire.Message{Type: wire.Finish, Code: code})
}

// setUp reads the configuration, or takes the one that the supervisor before has
// left.
func setUp(flags *launchFlags, command []string, left string) (supervisor.Setup, machine.Options, error) {
	r, err := newRereader(flags, command, left)
	if err != nil {
		return supervisor.Setup{}, machine.Options{}, err
	}
	return r.setup()
}

func newSamplerCommand() *cobra.Command {
	return &cobra.Command{
		Use: samplerCommand, Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return gpu.ServeSampler(c.Context(), os.Stdin, os.Stdout)
		},
	}
}
