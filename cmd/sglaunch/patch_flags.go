package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"sglaunch/internal/config"
	"sglaunch/internal/statedir"
	"sglaunch/patch"
)

// patchFlags say which patches are meant, and for which interpreter.
type patchFlags struct {
	file   string
	uses   []string
	python string
	json   bool
	color  string
}

func (f *patchFlags) register(c *cobra.Command) {
	c.Flags().StringVarP(&f.file, "config", "c", "", "launch.toml")
	c.Flags().StringArrayVar(&f.uses, "use", nil, fmt.Sprintf("a shipped patch, of %q", patch.ShippedNames()))
	c.Flags().StringVar(&f.python, "python", "", "interpreter; default: that of the command")
	c.Flags().BoolVar(&f.json, "json", false, "for scripts")
	c.Flags().StringVar(&f.color, "color", "auto", "auto | always | never")
}

// request is what the flags, the file and the command after -- come to.
type request struct {
	patches     []patch.Patch
	interpreter patch.Interpreter
	argv        []string
	ledger      *patch.Ledger
}

func (f *patchFlags) read(ctx context.Context, command []string) (request, error) {
	cfg, err := config.Load(config.Options{Path: f.file, Command: command, CommandOptional: true})
	if err != nil {
		return request{}, err
	}
	r := request{patches: cfg.Patches, argv: cfg.Server.Command}
	for _, use := range f.uses {
		if _, known := patch.Shipped(use); !known {
			return request{}, &exitError{exitUsage, fmt.Errorf("cannot use the patch %q: none of that name comes with sglaunch", use), fmt.Sprintf("known are %q", patch.ShippedNames())}
		}
		r.patches = append(r.patches, patch.Patch{Use: use})
	}
	if len(r.patches) == 0 {
		return request{}, &exitError{exitUsage, errors.New("cannot plan: no patch is given"), "-c launch.toml with [[patch]], or --use " + patch.ShippedNames()[0]}
	}
	if r.interpreter, err = f.interpreter(ctx, cfg); err != nil {
		return request{}, err
	}
	r.ledger, err = openLedger()
	return r, err
}

// interpreter is the one of the command; --python or server.python names
// another one, which then starts as the command would.
func (f *patchFlags) interpreter(ctx context.Context, cfg config.Config) (patch.Interpreter, error) {
	env, err := cfg.Environ(os.Environ())
	if err != nil {
		return patch.Interpreter{}, err
	}
	python := f.python
	if python == "" {
		python = cfg.Server.Python
	}
	argv := cfg.Server.Command
	switch {
	case python != "":
		argv = []string{python}
	case len(argv) == 0:
		argv = []string{"python3"}
	}
	dir, err := serverDirectory(cfg, "")
	if err != nil {
		return patch.Interpreter{}, err
	}
	in, err := patch.FindInterpreter(ctx, argv, dir, env)
	if errors.Is(err, patch.ErrNoPython) {
		hint := "name it: --python PATH, or server.python in launch.toml"
		if python != "" {
			hint = "it is to be the python of the server's environment, such as .venv/bin/python"
		}
		return in, &exitError{exitConfig, err, hint}
	}
	return in, err
}

func openLedger() (*patch.Ledger, error) {
	dir, err := statedir.Open()
	if err != nil {
		return nil, err
	}
	return patch.OpenLedger(dir.Patches())
}
