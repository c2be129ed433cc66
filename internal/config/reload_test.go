package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sglaunch/patch"
	"sglaunch/phases"
)

// Each changed key is named with the moment from which it counts.
func TestChanges(t *testing.T) {
	was, is := Default(), Default()
	if got := Changes(was, is); got != nil {
		t.Errorf("nothing has changed, and yet %v", got)
	}
	is.Server.Command = []string{"python"}
	is.Server.Env = map[string]string{"A": "1"}
	is.Phases.Limits = map[phases.Phase]Limit{phases.Warmup: {Quiet: time.Hour}}
	is.Phases.Own = []phases.Rule{{ID: "mine"}}
	is.Patches = []patch.Patch{{Use: "flashinfer-cutlass-autotune"}}
	is.Relaunch.Attempts = 9
	is.Relaunch.Fallbacks = []string{"cold-jit-caches"}
	is.Stop.Drain = time.Hour
	is.Hooks.OnReady = []string{"/bin/true"}
	want := []Change{
		{"server.command", NextLaunch}, {"server.env", NextLaunch}, {"phases.limits", Now}, {"phases.rule", NextAttempt},
		{"patch", NextLaunch}, {"relaunch.attempts", Now}, {"relaunch.fallbacks", NextLaunch}, {"stop.drain", Now}, {"hooks.on_ready", Now},
	}
	if diff := cmp.Diff(want, Changes(was, is)); diff != "" {
		t.Error(diff)
	}
	kept := Going(was, is)
	if kept.Server.Command != nil || kept.Patches != nil || kept.Relaunch.Attempts != 9 || kept.Phases.Own == nil {
		t.Errorf("a launch goes on with %+v", kept)
	}
	if is.Server.Command == nil {
		t.Error("what was read is changed by what is kept")
	}
}

// Every key has its moment, and no tag says anything else.
func TestReloadTags(t *testing.T) {
	c := Default()
	moments := map[string]When{}
	for _, f := range keys(&c) {
		moments[f.Key] = f.when()
		if when := f.when(); !slices.Contains([]When{Now, NextAttempt, NextLaunch}, when) {
			t.Errorf("%s takes effect %q", f.Key, when)
		}
	}
	for _, key := range []string{"relaunch.act", "phases.limits", "stop.grace", "hooks.webhook", "gpu.xid", "log.keep"} {
		if when, ok := moments[key]; !ok || when != Now {
			t.Errorf("%s does not take effect at once", key)
		}
	}
	if when, ok := moments["server.command"]; !ok || when != NextLaunch {
		t.Error("another command is another launch")
	}
}

// A configuration in force does not depend on what has become of the files that it
// names; other content of one of them is a change like any other.
func TestFilesInForce(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	rule := func(id string) string {
		return fmt.Sprintf("[[rule]]\nid = %q\nkind = \"note\"\nlit = \"a flux error\"\nhits = [\"a flux error\"]\nmisses = [\"none\"]\n", id)
	}
	env, rules, hook := write("server.env", "A=was\n"), write("rules.toml", rule("own-was")), write("hook", "#!/bin/sh\n")
	content := []byte(fmt.Sprintf("[server]\ncommand = [\"python\"]\nenv_file = %q\ndirectory = %q\n[phases]\nrules = %q\n[hooks]\non_ready = [%q]\n", env, dir, rules, hook))
	o := Options{Path: filepath.Join(dir, "launch.toml"), Content: content}
	was, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	write("server.env", "A=is\n")
	write("rules.toml", rule("own-is"))
	is, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Change{{"server.env_file", NextLaunch}, {"phases.rules", NextAttempt}}, Changes(was, is)); diff != "" {
		t.Error(diff)
	}
	going := Going(was, is)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(o); err == nil {
		t.Error("files that have gone are no mistake of a new launch")
	}
	o.Files = going.Files
	again, err := Load(o)
	if err != nil {
		t.Fatalf("in force, and refused: %v", err)
	}
	environ, err := again.Environ(nil)
	if err != nil || !slices.Equal(environ, []string{"A=was"}) {
		t.Errorf("the environment is %q, %v: it is that of the launch", environ, err)
	}
	own, err := again.OwnRules()
	if err != nil || own.Rules()[0].ID != "own-is" {
		t.Errorf("the rules are %v, %v: they are those reloaded", own, err)
	}
}
