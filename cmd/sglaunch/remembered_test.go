package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

// A supervisor that takes over goes on where the launch began, by what its files held
// then, though folder and files are gone.
func TestTakesOverWithoutItsFolder(t *testing.T) {
	t.Setenv("SGLAUNCH_STATE", t.TempDir())
	dir := filepath.Join(t.TempDir(), "deployed")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for name, content := range map[string]string{"launch.toml": "[server]\nenv_file = \"server.env\"\n", "server.env": "DEPLOYED=1\n"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var flags launchFlags
	flags.register(&cobra.Command{})
	flags.file = "launch.toml"
	first, err := newRereader(&flags, []string{"python"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	next, err := newRereader(&flags, []string{"python"}, first.remember())
	if err != nil {
		t.Fatal(err)
	}
	setup, _, err := next.setup()
	if err != nil {
		t.Fatal(err)
	}
	if setup.Dir != first.held.Dir || !slices.Contains(setup.Env, "DEPLOYED=1") {
		t.Errorf("it goes on in %q with %q", setup.Dir, setup.Env)
	}
}
