package config

import (
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
