package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestScripts runs testdata/scripts/*.txt. A script shows one rule:
//
//	# The rule, in a sentence.
//	options act=all attempts=3
//	patch   name=p proof=autotune file=/x/sglang/a.py
//	go up                      -> up
//	+5m http bad=503           -> up not=kill_tree
//	tick                       -> evidence "and nothing moved"
//
// A line is a step: how much time passes, what happens (see the verbs in
// actor_test.go), and after the arrow what must follow: the state, a quoted
// part of what is told, does=EFFECT, not=EFFECT, code=N and others, all of
// them about this line alone.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			a := newActor(t)
			if !strings.HasPrefix(string(data), "# ") {
				t.Fatal("a script begins with its rule")
			}
			for i, line := range strings.Split(string(data), "\n") {
				if line == "" || strings.HasPrefix(line, "#") {
					continue
				}
				if err := a.line(line); err != nil {
					t.Fatalf("%s:%d: %s\n\t%v\nstate %s, effects since the line began:\n%s",
						file, i+1, line, err, a.m.State(), a.show())
				}
			}
		})
	}
}

// line plays one line of a script.
func (a *actor) line(line string) error {
	words, err := splitWords(line)
	if err != nil {
		return err
	}
	a.effects = nil
	if d, ok := strings.CutPrefix(words[0].text, "+"); ok {
		passed, err := time.ParseDuration(d)
		if err != nil {
			return err
		}
		a.now = a.now.Add(passed)
		words = words[1:]
	}
	action, want := words, []word(nil)
	for i, w := range words {
		if w.text == "->" {
			action, want = words[:i], words[i+1:]
		}
	}
	if len(action) > 0 {
		if err := a.act(action[0].text, action[1:]); err != nil {
			return err
		}
	}
	for _, w := range want {
		if err := a.expect(w); err != nil {
			return err
		}
	}
	return nil
}

// expect checks one word after the arrow.
func (a *actor) expect(w word) error {
	if w.quoted {
		if !strings.Contains(a.told(), w.text) {
			return fmt.Errorf("nobody says %q", w.text)
		}
		return nil
	}
	key, value, ok := strings.Cut(w.text, "=")
	if !ok {
		if got := string(a.m.State()); got != key {
			return fmt.Errorf("state is %s, want %s", got, key)
		}
		return nil
	}
	got, ok := a.observe(key, value)
	if !ok {
		return fmt.Errorf("cannot expect %q", key)
	}
	if got != value {
		return fmt.Errorf("%s is %q, want %q", key, got, value)
	}
	return nil
}

// observe returns the value that an expectation compares.
func (a *actor) observe(key, value string) (got string, ok bool) {
	switch key {
	case "does", "not":
		for _, e := range a.effects {
			if name, _, err := acts.encode(e.Body); err == nil && name == value {
				return map[string]string{"does": value, "not": "done"}[key], true
			}
		}
		return map[string]string{"does": "missing", "not": value}[key], true
	case "silent": // about something
		if strings.Contains(a.told(), value) {
			return "told", true
		}
		return value, true
	case "code":
		code, ended := a.m.Ended()
		if !ended {
			return "none", true
		}
		return fmt.Sprint(code), true
	case "lines": // told to a person
		n := 0
		for _, e := range a.effects {
			if r, ok := e.Body.(Report); ok && r.Text != "" {
				n++
			}
		}
		return fmt.Sprint(n), true
	case "attempt":
		return fmt.Sprint(a.m.Attempt()), true
	case "phase":
		return a.m.Phase().String(), true
	case "degraded":
		if all := strings.Join(a.m.Degraded(), "; "); all == "" || value == "" || !strings.Contains(all, value) {
			return all, true
		}
		return value, true
	case "verdict": // that was told and not acted on
		if got := a.m.View().Verdict; value == "" || !strings.Contains(got, value) {
			return got, true
		}
		return value, true
	case "deadline": // from now
		at, armed := a.m.Deadline()
		if !armed {
			return "none", true
		}
		return at.Sub(a.now).String(), true
	}
	return a.observeEffect(key)
}

// observeEffect looks at the fields of what was asked for or told.
func (a *actor) observeEffect(key string) (got string, ok bool) {
	got = "none"
	for _, e := range a.effects {
		switch b := e.Body.(type) {
		case Spawn:
			switch key {
			case "flags":
				var all []string
				for _, f := range b.Flags {
					all = append(all, strings.TrimRight(f.Flag+"="+f.Value, "="))
				}
				got = strings.Join(all, ",")
			case "env":
				got = strings.Join(b.Environ("/private"), ",")
			}
		case ApplyPatch:
			if key == "without" {
				got = strings.Join(b.Without, ",")
			}
		case Preflight:
			if key == "beside" {
				var all []string
				for _, n := range b.Beside {
					all = append(all, fmt.Sprint(n.GPU))
				}
				got = strings.Join(all, ",")
			}
		case RevertPatch:
			if key == "set_aside" {
				got = fmt.Sprint(b.SetAside)
			}
		case KillTree, SignalServer:
			if key == "order" {
				got, _, _ = acts.encode(b)
			}
		case Report:
			if v, ok := b.Fields[key]; ok && slices.Contains(fieldsOfReports, key) {
				got = fmt.Sprint(v)
			}
		}
	}
	switch key {
	case "flags", "env", "without", "order", "beside", "set_aside":
		return got, true
	}
	return got, slices.Contains(fieldsOfReports, key)
}

var fieldsOfReports = []string{"outcome", "cause", "acted", "quiet", "seconds", "changes", "output_check", "output_checked", "generations"}

// word is a word of a script; quoted ones are texts.
type word struct {
	text   string
	quoted bool
}

// splitWords splits at blanks outside quotes. key="a b" is one word.
func splitWords(line string) ([]word, error) {
	var words []word
	var text strings.Builder
	inside, begun, quoted := false, false, false
	flush := func() {
		if begun {
			words = append(words, word{text.String(), quoted})
		}
		text.Reset()
		begun, quoted = false, false
	}
	for _, c := range line {
		switch {
		case c == '"':
			quoted = quoted || !begun
			inside, begun = !inside, true
		case c == ' ' && !inside || c == '\t' && !inside:
			flush()
		default:
			begun = true
			text.WriteRune(c)
		}
	}
	flush()
	if inside || len(words) == 0 {
		return nil, fmt.Errorf("cannot read %q", line)
	}
	return words, nil
}
