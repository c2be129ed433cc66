package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"sglaunch/internal/rehearsal"
)

// asSglaunch makes the test binary sglaunch itself: sglaunch starts copies of
// its own executable, whatever that is called.
const asSglaunch = "SGLAUNCH_TEST_MAIN"

// The test binary is sglaunch, and the tools that the scripts need.
func TestMain(m *testing.M) {
	if os.Getenv(asFirst) != "" {
		becomeFirst()
	}
	if os.Getenv(asSglaunch) != "" && filepath.Base(os.Args[0]) != "standin" {
		onOutput = dieOfPoison
		main() // a copy of ourselves that a test, or sglaunch, has started
		return
	}
	// What a test starts of us, though it be by a command that it runs in its own
	// process, is sglaunch and never another run of the tests.
	if err := os.Setenv(asSglaunch, "1"); err != nil {
		panic(err)
	}
	// Most of what the tests do is to wait for servers.
	if err := flag.Set("test.parallel", "5"); err != nil {
		panic(err)
	}
	testscript.Main(tidy{m}, map[string]func(){
		"sglaunch": main,
		"standin":  standin,
	})
}

// sharedDir holds the stand-in NVML library that all tests load.
var sharedDir string

// shared builds it once: compiling it is the same for each test.
var shared = sync.OnceValues(func() (lib string, err error) {
	if sharedDir, err = os.MkdirTemp("", "sglaunch-nvml-"); err != nil {
		return "", err
	}
	return rehearsal.BuildNVML(sharedDir)
})

// tidy removes the library when the last test has ended.
type tidy struct{ m *testing.M }

func (t tidy) Run() int {
	defer func() {
		if sharedDir != "" {
			_ = os.RemoveAll(sharedDir)
		}
	}()
	return t.m.Run()
}

func TestScripts(t *testing.T) {
	lib, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			state := filepath.Join(e.WorkDir, "state")
			e.Setenv("SGLAUNCH_STATE", state)
			e.Setenv(asSglaunch, "1")
			e.Setenv("STANDIN_NVML", lib)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"waitfor":  waitFor,
			"exitcode": exitCodeCommand,
		},
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

// standin is `standin build DIR SCENARIO[,SCENARIO] [once] [speed=N] [gpus=N]
// [version=V]`: it makes a stage and prints the environment that a launch on
// it needs, for `env` files of the scripts.
func standin() {
	if err := buildStandin(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "standin:", err)
		os.Exit(1)
	}
}

func buildStandin(args []string) error {
	if len(args) < 3 || args[0] != "build" {
		return fmt.Errorf("usage: standin build DIR SCENARIO [once] [speed=N] [gpus=N] [version=V]")
	}
	o := rehearsal.Options{GPUs: 4, Speed: 60, Shards: 20}
	once := false
	for _, a := range args[3:] {
		key, value, _ := strings.Cut(a, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "once":
			once = true
		case "speed":
			o.Speed = float64(n)
		case "gpus":
			o.GPUs = n
		case "version":
			o.Version = value
		default:
			return fmt.Errorf("unknown word %q", a)
		}
	}
	var scenarios []rehearsal.Scenario
	for _, name := range strings.Split(args[2], ",") {
		s, err := rehearsal.Find(name)
		if err != nil {
			return err
		}
		if s.Version != "" {
			o.Version = s.Version
		}
		if once {
			s = s.Once()
		}
		scenarios = append(scenarios, s)
	}
	stage, err := rehearsal.Build(args[1], o)
	if err != nil {
		return err
	}
	for _, kv := range stage.Env(scenarios...) {
		fmt.Println(kv)
	}
	fmt.Println("LD_LIBRARY_PATH=" + os.Getenv("STANDIN_NVML"))
	return nil
}

// dieOfPoison makes a supervisor panic on the line that a test names, as a bug
// in a rule would.
func dieOfPoison(output []byte) {
	if line := os.Getenv("SGLAUNCH_TEST_POISON"); line != "" && strings.Contains(string(output), line) {
		panic("a line that kills: " + line)
	}
}
