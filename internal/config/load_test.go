package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sglaunch/patch"
	"sglaunch/phases"
)

// equal compares configurations: no list and an empty one mean the same.
var equal = cmpopts.EquateEmpty()

var serve = []string{"python", "-m", "sglang.launch_server"}

func TestLoadWithoutFile(t *testing.T) {
	got, err := Load(Options{Command: serve})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Server.Command = serve
	if diff := cmp.Diff(want, got, equal); diff != "" {
		t.Error(diff)
	}
}

func TestLoadFile(t *testing.T) {
	path := write(t, `
[server]
name    = "glm"
command = ["venv/bin/python", "-m", "sglang.launch_server"]
python  = "python3.12"
env     = { HF_HOME = "/models", "odd.name" = "x" }

[phases]
rules = "sglang"
limits.loading_weights = { quiet = "15m", timeout = "4h" }

[[patch]]
use = "flashinfer-cutlass-autotune"
[[patch]]
name   = "own"
module = "sglang.srt.model_executor.model_runner"
edit   = [{ find = "a", replace = "b" }, { find = """
two
lines""", replace = "" }]
[patch.proof]
phase = "autotune"

[relaunch]
attempts = 7
backoff  = { max = "1h" }
on_foreign_stop = true

[gpu]
devices = ["GPU-1", "MIG-2"]
`)
	got, err := Load(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Server.Name = "glm"
	want.Server.Command = []string{filepath.Join(filepath.Dir(path), "venv/bin/python"), "-m", "sglang.launch_server"}
	want.Server.Python = "python3.12"
	want.Server.Env = map[string]string{"HF_HOME": "/models", "odd.name": "x"}
	want.Phases.Limits = map[phases.Phase]Limit{phases.LoadingWeights: {Quiet: 15 * time.Minute, Timeout: 4 * time.Hour}}
	want.Patches = []patch.Patch{
		{Use: "flashinfer-cutlass-autotune"},
		{
			Name: "own", Module: "sglang.srt.model_executor.model_runner",
			Edits: []patch.Edit{{Find: "a", Replace: "b"}, {Find: "two\nlines"}},
			Proof: patch.Proof{Phase: "autotune"},
		},
	}
	want.Relaunch.Attempts = 7
	want.Relaunch.Backoff.Max = time.Hour
	want.Relaunch.OnForeignStop = true
	want.GPU.Devices = Devices{UUIDs: []string{"GPU-1", "MIG-2"}}
	if diff := cmp.Diff(want, got, equal); diff != "" {
		t.Error(diff)
	}
}

func TestFlagsBeatFileBeatsDefaults(t *testing.T) {
	path := write(t, "[server]\ncommand = [\"from-file\"]\n[relaunch]\nattempts = 7\nsame_cause = 7\n")
	got, err := Load(Options{
		Path: path, Command: serve,
		Sets: []Set{
			{"relaunch.attempts", "9"},
			{"relaunch.backoff", `{ initial = "1s", max = "2s" }`},
			{"relaunch.backoff.max", "3s"},
			{"server.name", `a"b`},
			{"server.name", "glm"},
			{"gpu.devices", `["GPU-1"]`},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Server.Name, want.Server.Command = "glm", serve
	want.Relaunch.Attempts, want.Relaunch.SameCause = 9, 7
	want.Relaunch.Backoff.Initial, want.Relaunch.Backoff.Max = time.Second, 3*time.Second
	want.GPU.Devices.UUIDs = []string{"GPU-1"}
	if diff := cmp.Diff(want, got, equal); diff != "" {
		t.Error(diff)
	}
}

// In a file, relative paths are relative to the file; in a flag, to where
// sglaunch was started.
func TestRelativePaths(t *testing.T) {
	path := write(t, "[server]\ncommand = [\"./start.sh\"]\ndirectory = \".\"\nenv_file = \"server.env\"\npython = \"venv/bin/python\"\n")
	folder := filepath.Dir(path)
	if err := os.WriteFile(filepath.Join(folder, "server.env"), []byte("A=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	t.Chdir(elsewhere)
	got, err := Load(Options{Path: path, Sets: []Set{{"log.directory", "logs"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ got, want string }{
		{got.Server.Command[0], filepath.Join(folder, "start.sh")},
		{got.Server.Directory, folder},
		{got.Server.EnvFile, filepath.Join(folder, "server.env")},
		{got.Server.Python, filepath.Join(folder, "venv/bin/python")},
		{got.Log.Directory, filepath.Join(elsewhere, "logs")},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// Each case is a file (after a line that names a command) and every line of
// its report. "@" stands for the file's name.
func TestReports(t *testing.T) {
	cases := []struct {
		name, file string
		sets       []Set
		want       string
	}{
		{"misspelt", "[server]\nstdo = \"pty\"", nil, `
@:2: cannot use server.stdo: there is no such key
  hint: did you mean server.stdio?`},
		{"in the wrong table", "[server]\nattempts = 3", nil, `
@:2: cannot use server.attempts: there is no such key
  hint: did you mean relaunch.attempts?`},
		{"of no section, in a list", "[[phases.rule]]\nname = \"x\"\n[[phases.rule]]\nid = \"My\"\n", nil, `
@:1: cannot use phases.rule[0]: it has no id
@:2: cannot use phases.rule[0].name: there is no such key
  hint: known in phases.rule[0] are id, kind, phase, lit, re, since, until, source, from, unit, activity, severity, certain, cause, by_phase, depends_on, times, expected, raises, handled, why, hits, misses
@:3: cannot use phases.rule[1] = "My": want lower-case words joined by dashes`},
		{"unlike any", "[gpu]\nzzzzzz = 3", nil, `
@:2: cannot use gpu.zzzzzz: there is no such key
  hint: known in gpu are devices, sample, xid`},
		{"unknown table", "[serve]\nname = \"x\"", nil, `
@:1: cannot use serve: there is no such key
  hint: did you mean server?`},
		{"at the top", "name = \"x\"", nil, `
@:1: cannot use name: there is no such key
  hint: did you mean server.name?`},
		{"in an inline table", "[relaunch]\nbackoff = { initial = \"1s\",\n  maxx = \"2s\" }", nil, `
@:3: cannot use relaunch.backoff.maxx: there is no such key
  hint: did you mean relaunch.backoff.max?`},
		{"in the second patch", "[[patch]]\nuse = \"flashinfer-cutlass-autotune\"\n[[patch]]\nname = \"x\"\nedit = [{ find = \"a\" },\n{ fid = \"b\" }]\nmodule = \"m\"\n[patch.prof]\n", nil, `
@:3: cannot use patch[1]: edit 2: find is empty: name the exact text to replace
@:6: cannot use patch[1].edit[1].fid: there is no such key
  hint: did you mean patch[1].edit[1].find?
@:8: cannot use patch[1].prof: there is no such key
  hint: did you mean patch[1].proof?`},
		{"wrong types, all at once", "[server]\nname = 5\ncommand = \"python\"\n[relaunch]\nattempts = \"5\"\nwindow = 90\non_foreign_stop = 1\nbackoff = 3\n[gpu]\ndevices = \"all\"\n[stop]\ndrain = \"1 minute\"\n", nil, `
@:2: cannot use server.name = 5: it takes text in quotes
@:3: cannot use server.command = "python": it takes a list of text, as in ["a", "b"]
@:5: cannot use relaunch.attempts = "5": it takes a whole number
@:6: cannot use relaunch.window = 90: it takes a duration as text, as in "90s", "15m" or "4h"
@:7: cannot use relaunch.on_foreign_stop = 1: it takes true or false
@:8: cannot use relaunch.backoff = 3: it takes a table, as in { name = value }
@:10: cannot use gpu.devices = "all": it takes "auto" or a list of GPU UUIDs
@:12: cannot use stop.drain = "1 minute": it takes a duration as text, as in "90s", "15m" or "4h"`},
		{"bounds", "[relaunch]\nattempts = 0\nbackoff = { initial = \"10m\", factor = 0.5, jitter = 2 }\n[stop]\ngrace = \"-1s\"\nsignal = \"TERM\"\n[server]\nstdio = \"file\"\nname = \"../x\"\n[phases.limits]\nautotune = { quiet = \"2h\", timeout = \"1h\" }\n", nil, `
@:2: cannot use relaunch.attempts = 0: it must be from 1 to 1000
@:3: cannot use relaunch.backoff.initial = "10m": it must not be longer than max, 5m
@:3: cannot use relaunch.backoff.factor = 0.5: it must be from 1 to 100
@:3: cannot use relaunch.backoff.jitter = 2.0: it must be from 0 to 1
@:5: cannot use stop.grace = "-1s": it must be from 0s to 1h
@:6: cannot use stop.signal = "TERM": it must be one of SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGKILL
@:8: cannot use server.stdio = "file": it must be one of pty, pipe
@:9: cannot use server.name = "../x": it must be 1 to 64 letters, digits, dots, dashes and underscores, the first a letter or digit
@:11: cannot use phases.limits.autotune = { quiet = "2h", timeout = "1h" }: its quiet must not be longer than its timeout`},
		{"rungs that change a secret", "[[fallback]]\ncause = \"hf_auth\"\nset = { --api-key = \"s3cret\" }\nenv = { HF_TOKEN = \"s3cret\" }\n", nil, `
@:3: cannot use fallback[0].set.--api-key = "****": a fallback changes no secret: what it changes is recorded
@:4: cannot use fallback[0].env.HF_TOKEN = "****": a fallback changes no secret: what it changes is recorded`},
		{"rungs that could never be taken", "[[fallback]]\ncause = \"oom_grph_capture\"\nset = { x = \"1\" }\n[[fallback]]\ncause = \"load_hang\"\nphase = \"loading\"\nmin = -1\n[[fallback]]\ncause = \"\"\nenv = { \"A=B\" = \"1\" }\n", nil, `
@:2: cannot use fallback[0].cause = "oom_grph_capture": there is no such cause; did you mean oom_graph_capture?
@:3: cannot use fallback[0].set.x = "1": a flag begins with -
@:4: cannot use fallback[1] = "load_hang": it changes nothing: it must have set or env
@:6: cannot use fallback[1].phase: known are [starting distributed_init loading_weights weights_loaded kv_cache autotune graph_capture warmup ready serving]
@:7: cannot use fallback[1].min = -1: it must be from 0 to 2147483647
@:9: cannot use fallback[2].cause = "": there is no such cause; known are ` + strings.Join(causeNames(), ", ") + `
@:10: cannot use fallback[2].env."A=B" = "1": the name of a variable must not be empty or hold = or NUL`},
		{"a hook without a program", "[hooks]\non_failure = [\"\", \"x\"]\n", nil, `
@:2: cannot use hooks.on_failure = ["", "x"]: its first word must name a program`},
		{"no number at all", "[relaunch]\nbackoff = { factor = nan, jitter = inf }\n", nil, `
@:2: cannot use relaunch.backoff.factor = nan: it takes a finite number
@:2: cannot use relaunch.backoff.jitter = inf: it takes a finite number`},
		{"a date", "[server]\nname = 2026-02-19\n", nil, `
@:2: cannot use server.name = 2026-02-19T00:00:00Z: it takes text in quotes`},
		{"nobody has said that all may read it", "[listen]\nhttp = \":9180\"\n", nil, `
@:2: cannot use listen.http = ":9180": it must be host:port, as in "127.0.0.1:9180"; "0.0.0.0:9180" lets every machine read it`},
		{"syntax", "[server]\nname = \"x\nnext = 1\n", nil, `
@:2: cannot read this line: strings cannot contain newlines`},
		{"twice", "[server]\nname = \"x\"\nname = \"y\"\n", nil, `
@:3: cannot read this line: Key 'server.name' has already been defined.`},
		{"unknown phase", "[phases.limits.loading]\nquiet = \"1m\"\n", nil, `
@:1: cannot use phases.limits.loading: known are [starting distributed_init loading_weights weights_loaded kv_cache autotune graph_capture warmup ready serving]`},
		{"secrets stay secret", "[server]\nenv = { HF_TOKEN = 5, B = \"hf_abcdefghijklmnopqrstuvwx\\u0000\" }\n", nil, `
@:2: cannot use server.env.B = "hf_****\u0000": a NUL byte cannot be passed on to a process
@:2: cannot use server.env.HF_TOKEN = "****": it takes text in quotes`},
		{"flags", "", []Set{{"relaunch.attempts", "x"}, {"relaunch.attemps", "3"}, {"stop.drain", "5"}, {"relaunch.window", "1ms"}, {"server.command", "[1]"}, {"relaunch.same_cause", "1\n[x]"}}, `
cannot use --relaunch.attempts = "x": it takes a whole number in TOML: expected value but found "x" instead
cannot use --relaunch.attemps: there is no such key
  hint: did you mean --relaunch.attempts?
cannot use --stop.drain = "5": it takes a duration as text, as in "90s", "15m" or "4h"
cannot use --server.command[0] = 1: it takes text in quotes
cannot use --relaunch.same_cause = "1\n[x]": it takes a whole number in TOML: more than one value
cannot use --relaunch.window = "1ms": it must be from 1s to 744h`},
		{"missing files", "[server]\nenv_file = \"none.env\"\ndirectory = \"/nowhere\"\n[phases]\nrules = \"/nowhere.toml\"\n", nil, `
@:2: cannot use server.env_file = "#/none.env": no such file or directory
@:3: cannot use server.directory = "/nowhere": no such file or directory
@:5: cannot use phases.rules = "/nowhere.toml": no such file or directory`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, c.file)
			_, err := Load(Options{Path: path, Command: serve, Sets: c.sets})
			var all Errors
			if !errors.As(err, &all) {
				t.Fatalf("got %v, want Errors", err)
			}
			got := strings.ReplaceAll(all.Report(), path, "@")
			got = strings.ReplaceAll(got, filepath.Dir(path), "#")
			if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n")+"\n", got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNoCommand(t *testing.T) {
	_, err := Load(Options{})
	want := "cannot use server.command: it is empty: there is nothing to start"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := Load(Options{CommandOptional: true}); err != nil {
		t.Error(err)
	}
}

func TestUnreadableFiles(t *testing.T) {
	folder := t.TempDir()
	huge := filepath.Join(folder, "huge.toml")
	if err := os.WriteFile(huge, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(folder, "none.toml"): "no such file or directory",
		folder:                             "not a regular file",
		"/dev/zero":                        "not a regular file",
		huge:                               "larger than 262144 bytes",
	} {
		_, err := Load(Options{Path: path, Command: serve})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want ... %s", path, err, want)
		}
	}
}

// As root, nothing that others may change is read: not the file, and no file
// that it names.
func TestUntrustedFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root is bound by owners; package trust holds what others may read")
		return
	}
	folder := t.TempDir()
	open := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	env, rules, diff := open("server.env", "A=1"), open("rules.toml", ""), open("own.diff", "")
	path := write(t, "[server]\nenv_file = \""+env+"\"\n[phases]\nrules = \""+rules+"\"\n[[patch]]\nname = \"own\"\nmodule = \"m\"\ndiff = \""+diff+"\"\n")
	for _, c := range []struct {
		path string
		want []string // keys refused
	}{
		{open("launch.toml", ""), []string{""}},
		{path, []string{"server.env_file", "phases.rules", "patch[0].diff"}},
	} {
		_, err := Load(Options{Path: c.path, Command: serve})
		var all Errors
		if !errors.As(err, &all) {
			t.Fatalf("got %v, want Errors", err)
		}
		var got []string
		for _, e := range all {
			got = append(got, e.Key)
			if !strings.Contains(e.Problem, "others may change it") || !strings.Contains(e.Hint, "chown root") {
				t.Errorf("%v, hint %q", e, e.Hint)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Error(diff)
		}
	}
}
