package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sglaunch/internal/config"
	"sglaunch/internal/detach"
	"sglaunch/internal/serve"
	"sglaunch/internal/statedir"
	"sglaunch/supervisor"
)

const (
	handedCommand = "__handed" // takes what a service does not inherit
	detachLimit   = time.Minute
)

func newHandedCommand() *cobra.Command {
	return &cobra.Command{
		Use: handedCommand, Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := detach.Take(args[0])
			if err != nil {
				return err
			}
			self, err := thisProgram()
			if err != nil {
				return err
			}
			if err := os.Chdir(h.Dir); err != nil {
				return fmt.Errorf("cannot run in the folder of who asked: %w", err)
			}
			return syscall.Exec(self, append([]string{self}, h.Args...), h.Environ(os.Environ()))
		},
	}
}

// runDetached starts "sglaunch run" with the same words in the background of the
// machine, and returns when the launch is seen alive.
func runDetached(c *cobra.Command, cfg config.Config) error {
	dir, err := statedir.Open()
	if err != nil {
		return err
	}
	name := cfg.Server.Name
	if l := supervisor.Find(dir, name); l.Shim.PID != 0 {
		return &exitError{exitRunning, fmt.Errorf("cannot start %q: %w as process %d", name, supervisor.ErrAlreadyRunning, l.Shim.PID),
			"sglaunch attach follows it, sglaunch stop ends it, --server.name=NAME makes another"}
	}
	way := detach.Choose(thisHost())
	l, err := detachedLaunch(cfg, dir, way)
	if err != nil {
		return err
	}
	ended, err := way.Start(c.Context(), l)
	if err != nil {
		return err
	}
	if err := awaitBegin(c.Context(), dir, name, ended); err != nil {
		return errors.Join(err, lastWords(way, l))
	}
	tellDetached(c.OutOrStdout(), way, l)
	return nil
}

func thisHost() detach.Host {
	h := detach.Host{UID: os.Getuid(), Runtime: os.Getenv("XDG_RUNTIME_DIR")}
	if u, err := user.Current(); err == nil {
		h.User = u.Username
	}
	return h
}

func detachedLaunch(cfg config.Config, dir statedir.Dir, way detach.Way) (detach.Launch, error) {
	options, err := optionsOf(cfg)
	if err != nil {
		return detach.Launch{}, err
	}
	self, err := thisProgram()
	if err != nil {
		return detach.Launch{}, err
	}
	cwd, err := workingDirectory()
	if err != nil {
		return detach.Launch{}, err
	}
	logs := filepath.Join(dir.State, "detached")
	if err := os.MkdirAll(logs, statedir.DirMode); err != nil {
		return detach.Launch{}, fmt.Errorf("cannot make the folder of detached launches: %w", err)
	}
	args := withoutDetach(os.Args[1:])
	if way.Kind == detach.Session && cfg.Log.Passthrough == "auto" { // the raw log has it, in bounded parts
		at := slices.Index(args, "run") + 1
		args = slices.Insert(args, at, "--log.passthrough=off")
	}
	return detach.Launch{
		Name: cfg.Server.Name, Program: self, Args: args, Dir: cwd, Env: os.Environ(), Stop: options.LongestStop() + cfg.Hooks.Limit,
		Log: filepath.Join(logs, cfg.Server.Name+".log"), Folder: dir.Runtime, Handed: handedCommand, Recover: "recover",
	}, nil
}

// withoutDetach leaves out the one word that is not for the launch itself.
func withoutDetach(args []string) []string {
	var out []string
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		if a != "--detach" && a != "-d" && !strings.HasPrefix(a, "--detach=") {
			out = append(out, a)
		}
	}
	return out
}

// awaitBegin waits until the launch answers.
func awaitBegin(ctx context.Context, dir statedir.Dir, name string, ended func() bool) error {
	deadline := time.Now().Add(detachLimit)
	for {
		l := supervisor.Find(dir, name)
		if l.Shim.PID != 0 {
			if _, err := serve.Ask(ctx, l.Socket, serve.Request{Do: serve.DoStatus}); err == nil {
				return nil
			}
		}
		switch {
		case ended():
			return fmt.Errorf("cannot run %q detached: it ended at once", name)
		case time.Now().After(deadline):
			return fmt.Errorf("cannot say whether %q runs: it does not answer within %s; sglaunch status %s says how it stands", name, detachLimit, name)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(askAgain):
		}
	}
}

// lastWords are what a launch said that ended at once.
func lastWords(way detach.Way, l detach.Launch) error {
	switch way.Kind {
	case detach.System:
		return fmt.Errorf("its words: journalctl --unit %s", detach.Unit(l.Name))
	case detach.User:
		return fmt.Errorf("its words: journalctl --user --unit %s", detach.Unit(l.Name))
	}
	data, err := os.ReadFile(l.Log)
	if err != nil || len(data) == 0 {
		return nil
	}
	const most = 2000
	return fmt.Errorf("its last words:\n%s", strings.TrimSpace(string(data[max(0, len(data)-most):])))
}

// tellDetached says where the launch is now and what may take it away.
func tellDetached(w io.Writer, way detach.Way, l detach.Launch) {
	where := map[detach.Kind]string{
		detach.System: "as the service " + detach.Unit(l.Name), detach.User: "as your service " + detach.Unit(l.Name),
		detach.Session: "in a session of its own; its own lines go to " + l.Log,
	}[way.Kind]
	fmt.Fprintf(w, `%[1]s runs detached, %[2]s
  sglaunch status %[1]s   how far it is
  sglaunch attach %[1]s   follow its output
  sglaunch stop %[1]s     end it
`, l.Name, where)
	for _, trap := range way.Traps() {
		fmt.Fprintf(w, "warning: %s\n", trap)
	}
}
