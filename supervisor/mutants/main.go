// Mutants breaks the rules of the machine, one at a time, and runs the tests
// that must notice: a rule that can be broken unseen is not tested.
//
//	go run ./supervisor/mutants                     every mutant
//	go run ./supervisor/mutants -sample 60 -seed 3  sixty of them
//	go run ./supervisor/mutants -list               only says what it would break
//	go run ./supervisor/mutants -room internal/tune those of another room
//
// It runs in the module's root and changes no file: the tests are built once,
// over an overlay that holds every mutant asleep, and one is woken for each
// run. It ends with status 1 where a mutant lives that
// testdata/mutants.txt of its room does not explain.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// limit of one run of the tests: a mutant that hangs is noticed too.
const limit = 2 * time.Minute

// room is a package whose rules are broken.
type room struct {
	dir    string
	files  []string
	suites []string // tests that must notice, the quickest first
}

var rooms = []room{{
	dir: "supervisor/machine",
	files: []string{
		"budget.go", "checking.go", "ending.go", "machine.go", "moving.go", "neighbour.go", "policy.go", "rungs.go", "shortage.go", "silence.go", "suspect.go", "turns.go", "verdict.go", "watching.go",
		"words.go",
	},
	suites: []string{"^TestScripts$", "^(TestTransitionTable|TestMachine.*|TestWalk)$"},
}, {
	dir: "internal/tune",
	files: []string{
		"behind.go", "class.go", "clock.go", "confirm.go", "expand.go", "morning.go", "next.go", "night.go", "notice.go", "pointing.go", "ratio.go",
		"schedule.go", "score.go", "skip.go", "window.go",
	},
	suites: []string{"^TestScripts$", "."},
}}

// explained lists the mutants of the room that may live.
func (r room) explained() string { return filepath.Join(r.dir, "testdata", "mutants.txt") }

func main() {
	sample := flag.Int("sample", 0, "break only so many rules, drawn by the seed; 0 = all")
	seed := flag.Uint64("seed", 1, "of the sample")
	list := flag.Bool("list", false, "say what would be broken")
	workers := flag.Int("workers", 2, "mutants at a time")
	dir := flag.String("room", rooms[0].dir, "whose rules are broken")
	flag.Parse()
	i := slices.IndexFunc(rooms, func(r room) bool { return r.dir == *dir })
	if i < 0 {
		fmt.Fprintf(os.Stderr, "mutants: no rules are known of %q\n", *dir)
		os.Exit(1)
	}
	if err := rooms[i].run(*sample, *seed, *list, *workers); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func (r room) run(sample int, seed uint64, list bool, workers int) error {
	s := sleeper{room: r}
	for _, name := range r.files {
		if err := s.add(filepath.Join(r.dir, name)); err != nil {
			return err
		}
	}
	chosen := s.mutants
	if sample > 0 && sample < len(chosen) {
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		chosen = chosen[:sample]
	}
	if list {
		for _, m := range chosen {
			fmt.Println(m)
		}
		fmt.Printf("%d mutants\n", len(chosen))
		return nil
	}
	reasons, err := r.reasons()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, err := s.build(dir)
	if err != nil {
		return err
	}
	if !r.passes(binary, 0) {
		return errors.New("the tests fail with no rule broken")
	}
	alive := r.hunt(binary, chosen, workers, reasons)
	fmt.Printf("%d mutants, %d alive without a reason\n", len(chosen), alive)
	if alive > 0 {
		return errors.New("rules can be broken unseen: write a script for each")
	}
	return nil
}

// hunt tries every mutant and counts those that live unexplained.
func (r room) hunt(binary string, all []mutant, workers int, reasons map[string]bool) (alive int) {
	var mu sync.Mutex
	var group sync.WaitGroup
	next := make(chan mutant)
	for range workers {
		group.Go(func() {
			for m := range next {
				verdict := "caught"
				if r.passes(binary, m.number) {
					verdict = "alive"
				}
				mu.Lock()
				if verdict == "alive" && reasons[m.String()] {
					verdict = "explained"
				}
				if verdict == "alive" {
					alive++
				}
				if verdict != "caught" {
					fmt.Printf("%-9s %s\n", verdict, m)
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range all {
		next <- m
	}
	close(next)
	group.Wait()
	return alive
}

// passes runs the tests with one mutant awake; 0 = none.
func (r room) passes(binary string, number int) bool {
	for _, suite := range r.suites {
		test := exec.Command(binary, "-test.run", suite, "-test.failfast", "-test.timeout", limit.String())
		test.Dir = r.dir
		test.Env = append(os.Environ(), fmt.Sprintf("%s=%d", wake, number))
		if test.Run() != nil {
			return false
		}
	}
	return true
}

// reasons reads the mutants that change nothing, or nothing that matters;
// each stands below its reason.
func (r room) reasons() (map[string]bool, error) {
	data, err := os.ReadFile(r.explained())
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			known[line] = true
		}
	}
	return known, nil
}
