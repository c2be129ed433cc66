package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func parseFlags(t *testing.T, args ...string) []Set {
	t.Helper()
	fs := pflag.NewFlagSet("sglaunch", pflag.ContinueOnError)
	Flags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return SetsFrom(fs)
}

func TestFlags(t *testing.T) {
	sets := parseFlags(t,
		"--relaunch.backoff.max=10m", "--relaunch.backoff={ factor = 3 }", "--relaunch.on_foreign_stop",
		"--server.stdio=pipe", "--relaunch.attempts", "3", `--patch=[{ use = "flashinfer-cutlass-autotune" }]`,
		`--server.env={ A = "b" }`, `--phases.limits={ autotune = { quiet = "1h" } }`, "--server.name=--odd",
		"--server.name=glm",
	)
	got, err := Load(Options{Command: serve, Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	if b := got.Relaunch.Backoff; b.Factor != 3 || b.Max != 10*time.Minute || b.Initial != 5*time.Second {
		t.Errorf("backoff: got %+v", b)
	}
	if !got.Relaunch.OnForeignStop || got.Server.Stdio != "pipe" || got.Relaunch.Attempts != 3 ||
		len(got.Patches) != 1 || got.Server.Env["A"] != "b" || len(got.Phases.Limits) != 1 || got.Server.Name != "glm" {
		t.Errorf("got %+v", got)
	}
}

// Each key of the file has a flag, and each flag's default, given, changes
// nothing.
func TestEachKeyHasAFlag(t *testing.T) {
	fs := pflag.NewFlagSet("sglaunch", pflag.ContinueOnError)
	Flags(fs)
	c := Default()
	for _, f := range keys(&c) {
		flag := fs.Lookup(f.Key)
		if flag == nil {
			t.Errorf("%s has no flag", f.Key)
			continue
		}
		if f.Value.IsZero() {
			continue
		}
		got, err := Load(Options{CommandOptional: true, Sets: []Set{{f.Key, flag.DefValue}}})
		if err != nil {
			t.Errorf("%s=%s: %v", f.Key, flag.DefValue, err)
		} else if diff := cmp.Diff(Default(), got, equal); diff != "" {
			t.Errorf("%s=%s changes the defaults:\n%s", f.Key, flag.DefValue, diff)
		}
	}
}

func TestFlagUsageReadsWell(t *testing.T) {
	fs := pflag.NewFlagSet("sglaunch", pflag.ContinueOnError)
	Flags(fs)
	usage := fs.FlagUsages()
	for _, want := range []string{
		"--server.stdio text", "pty | pipe; pipe keeps standard output and error apart (default pty)",
		"--relaunch.attempts number", "--stop.drain duration", "(default 1m)",
	} {
		if !strings.Contains(usage, want) {
			t.Errorf("the usage lacks %q:\n%s", want, usage)
		}
	}
}

func TestNothingGivenNothingSet(t *testing.T) {
	if sets := parseFlags(t); len(sets) > 0 {
		t.Errorf("got %v", sets)
	}
}
