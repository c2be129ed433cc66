package conduct

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sglaunch/internal/config"
	"sglaunch/internal/tune"
	"sglaunch/patch"
)

func baseOf(t *testing.T, text string) config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "launch.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const prod = `
[server]
name = "prod"
command = ["/bin/python", "-m", "sglang.launch_server", "--model-path", "/m", "--tp", "8", "--trust-remote-code", "--api-key", "s3cret"]
env = { KEEP = "1", GONE = "1" }
[listen]
socket = "/run/prod.sock"
[hooks]
on_ready = ["/bin/true"]
[relaunch]
fallbacks = ["graph-capture-oom"]
[[patch]]
name = "one"
module = "a.b"
edit = [{ find = "x", replace = "y" }]
`

// What is launched is the base with the trial's changes, and loads again to what
// it is.
func TestServed(t *testing.T) {
	base := baseOf(t, prod)
	study := tune.DefaultStudy()
	study.Patches = []patch.Patch{{Name: "two", Module: "c.d", Edits: []patch.Edit{{Find: "x", Replace: "z"}}}}
	trial := tune.Trial{ID: "t-1", Name: "all", Set: map[string]tune.Value{
		"--tp": tune.TextValue("4"), "--trust-remote-code": {Kind: tune.Absent}, "--enable-x": {Kind: tune.Alone},
		"--cuda-graph-bs": tune.TextValue("1 2 4"), "--json-model-override-args": tune.TextValue(`{"a": 1}`),
		"$GONE": {Kind: tune.Absent}, "$NEW": tune.TextValue("2"), "patches": tune.TextValue("two one"),
	}}
	c, err := served(base, study, trial)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/bin/python", "-m", "sglang.launch_server", "--model-path", "/m", "--api-key", "s3cret",
		"--cuda-graph-bs", "1", "2", "4", "--enable-x", "--json-model-override-args", `{"a": 1}`, "--tp", "4"}
	if diff := cmp.Diff(want, c.Server.Command); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"KEEP": "1", "GONE": "", "NEW": "2"}, c.Server.Env); diff != "" {
		t.Error(diff)
	}
	if len(c.Patches) != 2 || c.Patches[0].Name != "two" || c.Patches[1].Name != "one" {
		t.Errorf("the patches are %+v", c.Patches)
	}
	if base.Server.Env["GONE"] != "1" || len(base.Patches) != 1 {
		t.Error("the base itself was changed")
	}
	path := filepath.Join(t.TempDir(), "new", "launch.toml")
	if err := writeConfig(path, c, "two lines\nof a head\n"); err != nil {
		t.Fatal(err)
	}
	again, err := config.Load(config.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if again.Brief() != c.Brief() {
		t.Errorf("it loads to another one:\n%s\n%s", again.Brief(), c.Brief())
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a file that holds a key has mode %v", info.Mode())
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), "# two lines\n# of a head\n") {
		t.Errorf("%s", text)
	}
}

// A trial has the night's name, no hooks, no second attempt; what serves in the
// morning has all of the base's.
func TestTrialsAreNoService(t *testing.T) {
	s := &site{base: baseOf(t, prod), study: tune.DefaultStudy(), dir: "/state/tune/night"}
	s.study.Name = "night"
	trial := tune.Trial{ID: "t-1", Set: map[string]tune.Value{"--tp": tune.TextValue("4")}}
	c, err := s.tried(trial, tune.Screen, "")
	if err != nil {
		t.Fatal(err)
	}
	if c.Server.Name != "tune-night" || c.Relaunch.Policy != "never" || c.Relaunch.Act != "all" || len(c.Relaunch.Fallbacks) != 0 ||
		len(c.Hooks.OnReady) != 0 || c.Listen.Socket != "" || c.Ready.OutputCheck != "always" || c.Ready.Timeout != s.study.Limits.Start {
		t.Errorf("a trial is launched with %+v", c)
	}
	if c, err = s.tried(trial, tune.Confirm, ""); err != nil || c.Ready.OutputCheck != "auto" {
		t.Errorf("a fresh launch of what was checked is checked again: %s %v", c.Ready.OutputCheck, err)
	}
	m, err := s.promoted(trial)
	if err != nil {
		t.Fatal(err)
	}
	if m.Server.Name != "prod" || m.Relaunch.Policy != "on-failure" || m.Relaunch.Act != "start" || len(m.Hooks.OnReady) != 1 || m.Listen.Socket == "" {
		t.Errorf("what serves is launched with %+v", m)
	}
	if folder := m.Server.Env["TRITON_CACHE_DIR"]; !strings.HasPrefix(folder, "/state/tune/night/caches/patches-") {
		t.Errorf("a winner keeps the kernels in %q", folder)
	}
	if b, err := s.promoted(tune.Trial{ID: tune.BaselineID}); err != nil || b.Brief() != s.base.Brief() {
		t.Errorf("the baseline is served as %s, %v", b.Brief(), err)
	}
}

// Sets of patches share no cache unless the study says so; a cold launch shares
// none.
func TestCaches(t *testing.T) {
	s := &site{base: baseOf(t, prod), study: tune.DefaultStudy(), dir: "/n"}
	set := func(text string) tune.Trial {
		return tune.Trial{ID: text, Set: map[string]tune.Value{"patches": tune.TextValue(text)}}
	}
	folder := func(trial tune.Trial, cold string) string { return s.caches(trial, cold)["FLASHINFER_WORKSPACE_BASE"] }
	plain, base := folder(set(""), ""), folder(tune.Trial{ID: tune.BaselineID}, "")
	if plain == base || base != folder(set("one"), "") || folder(set("one two"), "") != folder(set("two one"), "") || plain != "/n/caches/unpatched/flashinfer" {
		t.Errorf("unpatched %s, base %s", plain, base)
	}
	if got := folder(set(""), "/cold"); got != "/cold/flashinfer" {
		t.Errorf("cold: %s", got)
	}
	if s.study.Caches = tune.CachesShared; len(s.caches(set(""), "")) != 0 {
		t.Error("shared caches have folders of their own")
	}
}

// Flags inside a script are out of reach, and a patch has to exist.
func TestServedRefuses(t *testing.T) {
	script := filepath.Join(t.TempDir(), "start.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec python -m sglang.launch_server --model-path /m --tp 8\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(script)
	if err != nil {
		t.Fatal(err)
	}
	base := baseOf(t, "[server]\ncommand = ["+string(text)+"]\n")
	for name, v := range map[string]tune.Value{"--tp": tune.TextValue("4"), "--tp-size": tune.TextValue("4")} {
		_, err = served(base, tune.DefaultStudy(), tune.Trial{Set: map[string]tune.Value{name: v}})
		if err == nil || !strings.Contains(err.Error(), "out of reach") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = served(baseOf(t, prod), tune.DefaultStudy(), tune.Trial{Set: map[string]tune.Value{"patches": tune.TextValue("three")}})
	if err == nil || !strings.Contains(err.Error(), `cannot use the patch "three"`) {
		t.Errorf("%v", err)
	}
}

func TestTrialName(t *testing.T) {
	long := strings.Repeat("a", 64)
	if trialName("night") != "tune-night" || len(trialName(long)) > 64 || trialName(long) == trialName(long[:63]+"b") {
		t.Errorf("%q %q", trialName("night"), trialName(long))
	}
}
