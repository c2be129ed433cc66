package main

import (
	"os"
	"path/filepath"
	"testing"

	"sglaunch/internal/config"
	"sglaunch/phases"
)

// TestRulesAreLaidOver: a rules file and rules of launch.toml add to the
// built-in ones or replace one of them, and never take the others away.
func TestRulesAreLaidOver(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.toml")
	text := `[[rule]]
id = "ready"
kind = "ready"
lit = "open for business"
[[rule]]
id = "of-the-file"
kind = "note"
lit = "of the file"
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var c config.Config
	c.Phases.Rules = file
	c.Phases.Own = []phases.Rule{{ID: "of-the-file", Kind: phases.RuleNote, Lit: "of launch.toml"}}
	rules, err := rulesOf(c)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(rules.Rules()), len(phases.BuiltinRules().Rules())+1; got != want {
		t.Errorf("%d rules, want %d: the built-in ones and one more", got, want)
	}
	for id, want := range map[string]string{"ready": "open for business", "of-the-file": "of launch.toml"} {
		if r, _ := rules.Rule(id); r == nil || r.Lit != want {
			t.Errorf("rule %s: got %+v, want the literal %q", id, r, want)
		}
	}
	if _, ok := rules.Rule("weights-end"); !ok {
		t.Error("a rules file took the built-in rules away")
	}
}
