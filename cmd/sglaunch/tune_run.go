package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sglaunch/internal/config"
	"sglaunch/internal/gpu"
	"sglaunch/internal/statedir"
	"sglaunch/internal/tune"
	"sglaunch/internal/tune/conduct"
	"sglaunch/internal/visible"
)

func newTuneRunCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "run STUDY.toml",
		Short: "Try the settings of a study, then serve",
		Long: `Try the settings of a study until its deadline, then serve: the base, or the
winner where the study says promote = "serve". It stays the parent of what
serves, as "sglaunch run" would, and ends with its exit code.

Interrupted by whatever, the same command goes on where it was. Ctrl-C ends the
trials, and the morning comes at once; a second one, Ctrl-\ or SIGTERM stops
everything in order and leaves nothing serving.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := tuneOptions(c, args[0])
			if err != nil {
				return err
			}
			ctx, asked, stop := tuneSignals(c.Context())
			defer stop()
			o.Asked = asked
			code, err := conduct.Run(ctx, o)
			var refused *conduct.RefusedError
			switch {
			case errors.Is(err, conduct.ErrRunning):
				return &exitError{exitRunning, err, "sglaunch tune status " + args[0]}
			case errors.As(err, &refused):
				return &exitError{exitConfig, err, "sglaunch tune plan " + args[0] + " shows the whole plan"}
			case err != nil && code != 0:
				return &exitError{code, err, ""}
			case err != nil:
				return err
			case code != exitOK:
				return quietExit(code)
			}
			return nil
		},
	}
}

// tuneOptions are the study of a file and the machine that it is for.
func tuneOptions(c *cobra.Command, path string) (conduct.Options, error) {
	study, err := tune.Read(path)
	if err != nil {
		return conduct.Options{}, err
	}
	base, err := config.Load(config.Options{Path: study.Base})
	if err != nil {
		return conduct.Options{}, err
	}
	state, err := statedir.Open()
	if err != nil {
		return conduct.Options{}, err
	}
	self, err := thisProgram()
	if err != nil {
		return conduct.Options{}, err
	}
	return conduct.Options{
		State: state, Program: []string{self}, Study: study, Base: base,
		Source: gpu.Start(gpu.Options{Argv: []string{self, samplerCommand}, Interval: time.Second}),
		Tell: func(text string) {
			fmt.Fprintf(c.ErrOrStderr(), "%s sglaunch: %s\n", time.Now().Format(time.TimeOnly), visible.Line(text))
		},
	}, nil
}

// tuneSignals tells the two wishes apart: the first Ctrl-C wants the morning,
// everything else the end.
func tuneSignals(parent context.Context) (ctx context.Context, asked <-chan string, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	wishes, signals := make(chan string, 1), make(chan os.Signal, 4)
	signal.Notify(signals, endings()...)
	go func() {
		interrupted := false
		for {
			select {
			case s := <-signals:
				if s == syscall.SIGINT && !interrupted {
					interrupted = true
					wishes <- "Ctrl-C"
					continue
				}
				cancel()
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, wishes, func() {
		signal.Stop(signals)
		cancel()
	}
}
