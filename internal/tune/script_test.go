package tune

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestScripts runs testdata/scripts/*.txt. A script shows one rule:
//
//	# The rule, in a sentence.
//	axis --mem-fraction-static 0.88 0.9 0.92
//	plan
//	ok                                    -> launch="--mem-fraction-static 0.88"
//	fail oom_kv_cache phase=kv_cache      -> skip="--mem-fraction-static 0.92"
//
// A line is what happens to the launch that is asked for (see actor.act), and
// after the arrow what must follow: launch=NAME, stage=NAME and why=TEXT of the
// next launch, runs=N measurements in this line, first=POINT of them, left=POINTS left out, at=HH:MM, skip=NAME, broke=NAME, winner=NAME, noise=N of the verdict,
// serving=NAME, drift=yes, code=N, a quoted
// part of what is noted; with not- before it, what must not.
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
			if !strings.HasPrefix(string(data), "# ") {
				t.Fatal("a script begins with its rule")
			}
			a := newActor(t)
			for i, line := range strings.Split(string(data), "\n") {
				if line == "" || strings.HasPrefix(line, "#") {
					continue
				}
				if err := a.line(line); err != nil {
					t.Fatalf("%s:%d: %s\n\t%v\n%s", file, i+1, line, err, a.show())
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
	action, want := words, []string(nil)
	if i := slices.Index(words, "->"); i >= 0 {
		action, want = words[:i], words[i+1:]
	}
	if err := a.act(action[0], action[1:]); err != nil {
		return err
	}
	if len(want) > 0 {
		a.settle()
	}
	for _, w := range want {
		if err := a.expect(w); err != nil {
			return err
		}
	}
	return nil
}

// splitWords splits at blanks outside of quotes; the quotes go.
func splitWords(line string) (words []string, err error) {
	word, quoted, open := "", false, false
	for _, r := range line + " " {
		switch {
		case r == '"':
			quoted, open = !quoted, true
		case r == ' ' && !quoted:
			if open {
				words = append(words, word)
			}
			word, open = "", false
		default:
			word, open = word+string(r), true
		}
	}
	if quoted {
		return nil, fmt.Errorf("a quote is not closed")
	}
	return words, nil
}

// expect checks one word after the arrow.
func (a *actor) expect(word string) error {
	key, value := "", word
	if k, v, ok := strings.Cut(word, "="); ok && !strings.Contains(k, " ") {
		key, value = k, v
	}
	key, negative := strings.CutPrefix(key, "not-")
	ok, got := a.holds(key, value)
	switch {
	case ok == negative && negative:
		return fmt.Errorf("not expected: %s", word[len("not-"):])
	case ok == negative:
		return fmt.Errorf("want %s, got %v", word, got)
	}
	return nil
}

func (a *actor) holds(key, value string) (ok bool, got any) {
	name := func(trial string) string { return a.n.trials[trial].Name }
	next := a.n.Next(a.now)
	switch launch, isLaunch := next.(Launch); key {
	case "launch":
		return isLaunch && name(launch.Slot.Trial) == value, name(launch.Slot.Trial)
	case "stage":
		return isLaunch && string(launch.Slot.Stage) == value, launch.Slot.Stage
	case "why":
		return isLaunch && launch.Why == value, launch.Why
	case "cold":
		return isLaunch && launch.Cold == (value == "true"), launch.Cold
	case "runs":
		runs := told[Measured](a)
		return fmt.Sprint(runs) == value, runs
	case "first":
		for _, b := range a.told() {
			if m, is := b.(Measured); is {
				return m.Point.String() == value, m.Point
			}
		}
		return false, nil
	case "flushes":
		flushes := told[Flushed](a)
		return fmt.Sprint(flushes) == value, flushes
	case "at":
		return a.now.Format("15:04") == value, a.now.Format("15:04")
	case "code":
		end, isEnd := next.(End)
		return isEnd && fmt.Sprint(end.Code) == value, next
	}
	var all []string
	for _, b := range a.told() {
		said := ""
		switch b := b.(type) {
		case LeftOut:
			if said = b.Text; key == "left" {
				said = PointsText(b.Points)
			}
		case Skipped:
			if said = b.Text; key == "skip" {
				said = name(b.Trial)
			} else if key == "rule" {
				said = b.Rule
			}
		case Broke:
			if said = b.Text; key == "broke" {
				said = b.Breaker
			}
		case Decided:
			if said = b.Verdict.Text; key == "winner" {
				said = name(b.Verdict.Winner)
			} else if key == "noise" {
				said = fmt.Sprintf("%.3f", b.Verdict.Noise)
			}
		case Serving:
			if key == "serving" {
				said = name(b.Trial)
			}
		case Drifted:
			if said = "drifted"; key == "drift" {
				said = "yes"
			}
		case Done:
			said = b.Text
		case Ended:
			said = b.Text
		}
		if said == value || key == "" && strings.Contains(said, value) {
			return true, nil
		}
		all = append(all, said)
	}
	return value == "" && key == "winner", all
}

// told counts the records of a kind in the present line.
func told[B Body](a *actor) (count int) {
	for _, b := range a.told() {
		if _, is := b.(B); is {
			count++
		}
	}
	return count
}

// show lists the records of the present line.
func (a *actor) show() string {
	var b strings.Builder
	for _, r := range a.records[a.since:] {
		fmt.Fprintf(&b, "\t%d %s %s %+v\n", r.Seq, r.At.Format("15:04:05"), r.Kind(), r.Body)
	}
	fmt.Fprintf(&b, "\tnext at %s: %+v\n", a.now.Format("15:04:05"), a.n.Next(a.now))
	return b.String()
}
