package config

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sglaunch/internal/mask"
	"sglaunch/patch"
	"sglaunch/phases"
)

// Whatever a file holds, Load ends with a configuration that can be written
// and read again, or with errors that a person can find in the file.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(Example()))
	f.Add([]byte("[server]\nname = 1\nenv = { A = \"b\" }\n[[patch]]\nedit = [{ find = \"a\" }]\n[patch.proof]\nphase = \"x\"\n"))
	f.Add([]byte("a.b.c = [{ d = [[1], {}] }]\n[phases.limits.autotune]\nquiet = \"1m\"\n\"\x1b[2J\" = 1\n"))
	path := filepath.Join(f.TempDir(), "launch.toml")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(Options{Path: path, CommandOptional: true})
		if err != nil {
			var all Errors
			if !errors.As(err, &all) {
				t.Fatalf("%T is no Errors: %v", err, err)
			}
			checkErrors(t, all, content)
			return
		}
		checkRoundTrip(t, c, path)
	})
}

// checkErrors wants each error on one line of printable text, about a line of
// the file that exists.
func checkErrors(t *testing.T, all Errors, content []byte) {
	t.Helper()
	for _, e := range all {
		if e.Problem == "" || e.Line > 1+bytes.Count(content, []byte("\n")) {
			t.Errorf("an error that says nothing or points nowhere: %+v", *e)
		}
		for _, r := range e.Error() + e.Hint {
			if unicode.IsControl(r) {
				t.Errorf("the error %q holds the control character %U", e.Error(), r)
			}
		}
	}
}

// checkRoundTrip wants what is written to be c again, secrets aside where they
// are masked.
func checkRoundTrip(t rapid.TB, c Config, path string) {
	t.Helper()
	for _, w := range []struct {
		text string
		want Config
	}{{c.Effective(), c.Masked()}, {c.Text(), c}, {c.Brief(), c}} {
		if err := os.WriteFile(path, []byte(w.text), 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := Load(Options{Path: path, CommandOptional: true})
		if err != nil {
			t.Fatalf("what was written does not load: %v\n%s", err, w.text)
		}
		if diff := cmp.Diff(w.want, again, equal); diff != "" {
			t.Fatalf("what was written loads to another configuration:\n%s\n%s", diff, w.text)
		}
	}
}

func TestEffectiveRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "launch.toml")
	rapid.Check(t, func(t *rapid.T) {
		checkRoundTrip(t, drawConfig(t), path)
	})
}

// drawConfig makes any valid configuration of this version.
func drawConfig(t *rapid.T) Config {
	text := rapid.StringMatching(`[^\x00]*`).Filter(func(s string) bool { return mask.String(s) == s })
	words := rapid.SliceOfN(text, 0, 4)
	span := func(least, most time.Duration, label string) time.Duration {
		return time.Duration(rapid.Int64Range(int64(least), int64(most)).Draw(t, label))
	}
	c := Default()
	for _, f := range keys(&c) {
		if words := f.oneof(); len(words) > 0 {
			f.Value.SetString(rapid.SampledFrom(words).Draw(t, f.Key))
		}
	}
	c.Server.Name = rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,63}`).Draw(t, "name")
	c.Server.Command = append([]string{"/bin/" + rapid.StringMatching(`[a-z]+`).Draw(t, "program")}, words.Draw(t, "command")...)
	c.Server.Env = rapid.MapOfN(rapid.StringMatching(`[^=\x00]+`), text, 0, 4).Draw(t, "env")
	c.Server.Directory = rapid.SampledFrom([]string{"", "/"}).Draw(t, "directory")
	c.Ready.Timeout = span(time.Second, aMonth, "timeout")
	for _, p := range rapid.SliceOfNDistinct(rapid.SampledFrom(phases.Phases()), 0, 3, rapid.ID[phases.Phase]).Draw(t, "phases") {
		quiet := span(0, aMonth, "quiet")
		if c.Phases.Limits == nil {
			c.Phases.Limits = map[phases.Phase]Limit{}
		}
		c.Phases.Limits[p] = Limit{Quiet: quiet, Timeout: span(max(quiet, 1), aMonth, "limit")}
	}
	if rapid.Bool().Draw(t, "patched") {
		c.Patches = []patch.Patch{{
			Name: "own", Module: "a.b", Method: patch.MethodFile, Revert: patch.RevertNever,
			Edits: []patch.Edit{{Find: "x" + text.Draw(t, "find"), Replace: "y" + text.Draw(t, "replace"), Count: 2}},
			Proof: patch.Proof{Phase: "autotune"},
		}}
	}
	c.Relaunch.Attempts = rapid.IntRange(1, 1000).Draw(t, "attempts")
	c.Relaunch.Backoff.Factor = rapid.Float64Range(1, 100).Draw(t, "factor")
	c.Relaunch.Backoff.Jitter = rapid.Float64Range(0, 1).Draw(t, "jitter")
	c.Relaunch.Backoff.Max = span(c.Relaunch.Backoff.Initial, aWeek, "max")
	c.Stop.Drain = span(0, 24*time.Hour, "drain")
	c.GPU.Devices.UUIDs = rapid.SliceOfN(rapid.StringMatching(`GPU-[0-9a-f]+`), 0, 3).Draw(t, "devices")
	return c
}

// Any value of a Size and a duration is written as it is read.
func TestValuesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := Size(rapid.Int64Range(0, 1<<62).Draw(t, "size"))
		if got, err := parseSize(size.String()); err != nil || got != size {
			t.Fatalf("size %d is %q, read as %d, %v", size, size.String(), got, err)
		}
		span := time.Duration(rapid.Int64().Draw(t, "duration"))
		if got, err := time.ParseDuration(formatDuration(span)); err != nil || got != span {
			t.Fatalf("%v is %q, read as %v, %v", span, formatDuration(span), got, err)
		}
	})
}

func TestParseSizeRefuses(t *testing.T) {
	for _, text := range []string{"", "1", "1GB", "1gib", "-1B", "+1B", "1.5GiB", "GiB", " 1B", "9999999TiB", "99999999999999999999B", "1 GiB"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q was read as %d", text, got)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", 90 * time.Second: "1m30s", 15 * time.Minute: "15m", 4 * time.Hour: "4h",
		4*time.Hour + time.Second: "4h0m1s", 70 * time.Minute: "1h10m", 20 * time.Hour: "20h", 10 * time.Second: "10s",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}

// Hostile files end in a bounded list of errors. What costs the square of its
// size would not end at all here: there is no clock to fail on a busy machine.
func TestHostileFilesEnd(t *testing.T) {
	for name, content := range map[string]string{
		"unknown keys":  "[a]\n" + manyKeys(3_000),
		"deep dots":     strings.Repeat("a.", maxFile/2-10) + "a = 1",
		"deep tables":   "a = " + strings.Repeat("{ a = ", 5000) + "1" + strings.Repeat(" }", 5000),
		"deep lists":    "a = " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"long name":     "[" + strings.Repeat("a", maxFile/2) + "]\n" + manyKeys(2_000),
		"many patches":  strings.Repeat("[[patch]]\n", 3_000),
		"many env":      "[server.env]\n" + manyKeys(3_000),
		"many commands": "[server]\ncommand = [" + strings.Repeat("1,", 50_000) + "]",
	} {
		t.Run(name, func(t *testing.T) {
			if len(content) > maxFile {
				t.Fatalf("the case is larger than %d", maxFile)
			}
			_, err := Load(Options{Path: write(t, content), Command: serve})
			var all Errors
			if !errors.As(err, &all) || len(all) > maxErrors || len(all.Report()) > 100_000 {
				t.Errorf("got %d errors in %d bytes", len(all), len(all.Report()))
			}
		})
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("k")
		b.WriteString(strings.Repeat("x", i%3))
		b.WriteString(strconv.Itoa(i))
		b.WriteString(" = 1\n")
	}
	return b.String()
}
