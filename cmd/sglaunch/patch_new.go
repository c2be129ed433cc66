package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"

	"sglaunch/internal/config"
	"sglaunch/patch"
)

func newPatchNewCommand() *cobra.Command {
	var flags patchFlags
	var name string
	c := &cobra.Command{
		Use:   "new MODULE [-c launch.toml] [--python PATH] [-- command ...]",
		Short: "Write a patch by editing a copy of a module",
		Long: `Open a copy of an installed module in $VISUAL or $EDITOR, and print the [[patch]]
that makes the same change: anchored edits inside the class or def that you
changed, for the release that is installed. Append it to launch.toml. The
installed file is not touched.`,
		Example: "  sglaunch patch new sglang.srt.model_executor.model_runner >> launch.toml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := config.Load(config.Options{Path: flags.file, Command: args[1:], CommandOptional: true})
			if err != nil {
				return err
			}
			in, err := flags.interpreter(c.Context(), cfg)
			if err != nil {
				return err
			}
			found, err := patch.Locate(c.Context(), in, args[0])
			if err != nil {
				return &exitError{exitPatch, err, "--python names another interpreter"}
			}
			if !found.Release {
				complain(c.ErrOrStderr(), found.Path+" is not known to be as released; the patch will be for its present content", "")
			}
			changed, err := edit(c.Context(), found)
			if err != nil {
				return err
			}
			p, err := newPatch(name, args[0], found, changed)
			if err != nil {
				return &exitError{exitPatch, err, ""}
			}
			return writePatch(c.OutOrStdout(), p)
		},
	}
	c.Flags().StringVarP(&flags.file, "config", "c", "", "launch.toml")
	c.Flags().StringVar(&flags.python, "python", "", "interpreter; default: that of the command")
	c.Flags().StringVar(&name, "name", "", "of the patch; default: made from the module")
	return c
}

// edit lets a person change a copy and returns what they made of it.
func edit(ctx context.Context, found patch.Located) ([]byte, error) {
	dir, err := os.MkdirTemp("", "sglaunch-patch-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	draft := filepath.Join(dir, filepath.Base(found.Path))
	if err := os.WriteFile(draft, found.Content, 0o600); err != nil {
		return nil, err
	}
	editor := os.Getenv("VISUAL")
	if editor == "" {
		editor = os.Getenv("EDITOR")
	}
	if editor == "" {
		return nil, &exitError{exitUsage, errors.New("cannot edit: no editor is set"), "EDITOR=vi sglaunch patch new MODULE"}
	}
	// The variable holds a command line by custom, such as "code --wait".
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", draft)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stderr, os.Stderr // standard output is for the patch
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("cannot edit: %s: %w", editor, err)
	}
	return os.ReadFile(draft)
}

// draft is the part of a patch that is written out; its keys are launch.toml's.
type draft struct {
	Name     string    `toml:"name"`
	Variants []variant `toml:"variant"`
}

type variant struct {
	Package string       `toml:"package,omitempty"`
	Version string       `toml:"version,omitempty"`
	Module  string       `toml:"module"`
	Before  []string     `toml:"sha256_before"`
	After   string       `toml:"sha256_after"`
	Edits   []patch.Edit `toml:"edit"`
}

func newPatch(name, module string, found patch.Located, changed []byte) (draft, error) {
	edits, err := patch.EditsFrom(found.Content, changed)
	if err != nil {
		return draft{}, err
	}
	for i := range edits {
		edits[i].Count = 1 // said, for a person to see what it means
	}
	if name == "" {
		name = strings.ReplaceAll(module[strings.LastIndexByte(module, '.')+1:], "_", "-")
	}
	v := variant{Package: found.Package, Module: module, Edits: edits, Before: []string{patch.Hash(found.Content)}, After: patch.Hash(changed)}
	if found.Version != "" {
		v.Version = "==" + found.Version
	}
	return draft{name, []variant{v}}, nil
}

func writePatch(w io.Writer, d draft) error {
	fmt.Fprintln(w)
	e := toml.NewEncoder(w)
	e.Indent = ""
	return e.Encode(struct {
		Patches []draft `toml:"patch"`
	}{[]draft{d}})
}
