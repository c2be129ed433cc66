package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseEnv(t *testing.T) {
	const file = `# a comment

PLAIN=one two # not a comment
export EXPORTED=yes
  INDENTED = spaced
EMPTY=
SINGLE='a "b" \n $C' # comment
DOUBLE="a 'b'\n\t\"\\\$\x"
WINDOWS=line` + "\r" + `
TWICE=1
TWICE=2
`
	got, problems := parseEnv("f", []byte(file))
	if err := problems.orNil(); err == nil {
		t.Error("INDENTED with blanks before = must be refused, as a shell would")
	} else if diff := cmp.Diff(`f:5: cannot read this line: "INDENTED " is no name of a variable`, err.Error()); diff != "" {
		t.Error(diff)
	}
	want := map[string]string{
		"PLAIN": "one two # not a comment", "EXPORTED": "yes", "EMPTY": "",
		"SINGLE": `a "b" \n $C`, "DOUBLE": "a 'b'\n\t\"\\$\\x", "WINDOWS": "line", "TWICE": "2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseEnvProblems(t *testing.T) {
	for line, want := range map[string]string{
		"nothing":        "it must be NAME=value",
		"=x":             `"" is no name of a variable`,
		"1A=x":           `"1A" is no name of a variable`,
		"A-B=x":          `"A-B" is no name of a variable`,
		`A="open`:        "a quote is never closed",
		`A="open\"`:      "a quote is never closed",
		`A='x' y`:        "there is text after the closing quote",
		"A=x\x00y":       "it holds a NUL byte",
		"TOKEN='secret ": "a quote is never closed",
	} {
		_, problems := parseEnv("f", []byte("\n"+line))
		if got, want := problems.Error(), "f:2: cannot read this line: "+want; got != want {
			t.Errorf("%q: got %s, want %s", line, got, want)
		}
	}
}

func TestEnvironMerges(t *testing.T) {
	c := Config{
		Server: Server{EnvFile: "/server.env", Env: map[string]string{"B": "env"}},
		Files:  Files{"/server.env": []byte("A=file\nB=file\n")},
	}
	got, err := c.Environ([]string{"A=inherited", "Z=inherited", "Z=again", "broken"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"A=file", "B=env", "Z=again"}, got); diff != "" {
		t.Error(diff)
	}
}

// Whatever a value holds, quoting it and reading it back gives it again.
func TestEnvRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[^\x00]*`).Draw(t, "value")
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value) + `"`
		got, problems := parseEnv("f", []byte("A="+quoted))
		if len(problems) > 0 || got["A"] != value {
			t.Fatalf("%q came back as %q, %v", value, got["A"], problems)
		}
	})
}

func FuzzParseEnv(f *testing.F) {
	f.Add([]byte("A=b\nexport C='d' # e\nF=\"\\"))
	f.Fuzz(func(t *testing.T, content []byte) {
		env, problems := parseEnv("f", content)
		for name, value := range env {
			if !isVariable(name) || strings.ContainsRune(value, 0) {
				t.Errorf("%q=%q cannot be an environment variable", name, value)
			}
		}
		checkErrors(t, problems, content)
	})
}
