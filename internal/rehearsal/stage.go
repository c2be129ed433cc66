package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Options say what Build makes. The zero value is good.
type Options struct {
	Version string  // of SGLang, "0.5.7" to "0.5.12.post1"; "" means DefaultVersion
	Python  string  // name or path of the interpreter; "" means python3
	Speed   float64 // how many times faster than the real thing time runs; 0 means DefaultSpeed
	GPUs    int     // of the board; 0 means 8
	Shards  int     // of the checkpoint; 0 means 62
	NVML    bool    // build the stand-in library too; needs a C compiler
}

// What the zero Options stand for.
const (
	DefaultVersion = "0.5.9"
	DefaultSpeed   = 20
)

// Stage is an installed stand-in server. Its fields are paths for callers to
// read; nothing outside Dir is ever written.
type Stage struct {
	Dir     string // holds all of the below
	Version string // of the SGLang that it plays
	Speed   float64

	Python string // interpreter of the virtual environment
	Bin    string // its bin folder: python, sglang, ninja
	Site   string // its site-packages
	Model  string // a checkpoint folder with a config and tiny shards
	State  string // counts the starts, so that a scenario may apply to the first only
	Board  string // state file of the GPUs; see Board
	Cache  string // tuning results
	Lib    string // folder of the stand-in libnvidia-ml.so.1; "" unless Options.NVML

	gpus int
}

// Build makes a stage in dir, which is created and must not hold one already.
// It needs a python3 (ErrNoPython), and a C compiler if o.NVML is set.
func Build(dir string, o Options) (*Stage, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	python, err := findPython(o.Python)
	if err != nil {
		return nil, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot build a stage: %w", err)
	}
	s := &Stage{
		Dir: dir, Version: o.Version, Speed: o.Speed, gpus: o.GPUs,
		Bin:   filepath.Join(dir, "venv", "bin"),
		Site:  filepath.Join(dir, "venv", "lib", fmt.Sprintf("python3.%d", python.Minor), "site-packages"),
		Model: filepath.Join(dir, "model"),
		State: filepath.Join(dir, "state"),
		Board: filepath.Join(dir, "gpus", "board"),
		Cache: filepath.Join(dir, "cache"),
	}
	s.Python = filepath.Join(s.Bin, "python")
	if err := s.build(python, o); err != nil {
		return nil, fmt.Errorf("cannot build a stage in %q: %w", dir, err)
	}
	return s, nil
}

func (o Options) complete() (Options, error) {
	if o.Version == "" {
		o.Version = DefaultVersion
	}
	if o.Python == "" {
		o.Python = "python3"
	}
	if o.Speed == 0 {
		o.Speed = DefaultSpeed
	}
	if o.GPUs == 0 {
		o.GPUs = 8
	}
	if o.Shards == 0 {
		o.Shards = 62
	}
	switch {
	case o.Speed < 0:
		return o, fmt.Errorf("cannot run at speed %v: it must be above 0", o.Speed)
	case o.GPUs < 1 || o.GPUs > maxGPUs:
		return o, fmt.Errorf("cannot play %d GPUs: 1 to %d are possible", o.GPUs, maxGPUs)
	case o.Shards < 1 || o.Shards > 2000:
		return o, fmt.Errorf("cannot play %d shards: 1 to 2000 are possible", o.Shards)
	}
	if _, err := autotuneList(o.Version); err != nil {
		return o, err
	}
	return o, nil
}

func (s *Stage) build(python interpreter, o Options) error {
	if _, err := os.Lstat(s.Python); err == nil {
		return errors.New("it holds a stage already")
	}
	for _, d := range []string{s.Bin, s.Site, s.Model, s.State, filepath.Dir(s.Board)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	if err := s.makeVenv(python); err != nil {
		return err
	}
	if err := s.install(); err != nil {
		return err
	}
	if err := s.makeModel(o.Shards); err != nil {
		return err
	}
	if err := (Board{GPUs: Machine(o.GPUs)}).Write(s.Board); err != nil {
		return err
	}
	if o.NVML {
		lib, err := BuildNVML(filepath.Join(s.Dir, "nvml"))
		if err != nil {
			return err
		}
		s.Lib = lib
	}
	return s.compile()
}

// compile makes the byte code, as pip does at the end of an installation. It
// keeps eight ranks from compiling the same files at their first start.
func (s *Stage) compile() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, s.Python, "-m", "compileall", "-q", s.Site).CombinedOutput()
	if err != nil {
		return fmt.Errorf("compile the package: %w: %s", err, out)
	}
	return nil
}

// Fork is the same installation with its own count of starts and its own idle
// board, in dir: for rehearsals that run side by side.
func (s *Stage) Fork(dir string) (*Stage, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot fork the stage: %w", err)
	}
	fork := *s
	fork.State = filepath.Join(dir, "state")
	fork.Board = filepath.Join(dir, "gpus", "board")
	fork.Cache = filepath.Join(dir, "cache")
	for _, d := range []string{fork.State, filepath.Dir(fork.Board)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, fmt.Errorf("cannot fork the stage: %w", err)
		}
	}
	if err := (Board{GPUs: Machine(s.gpus)}).Write(fork.Board); err != nil {
		return nil, err
	}
	return &fork, nil
}

// Command is the command line that starts the server with these arguments.
func (s *Stage) Command(args ...string) []string {
	return append([]string{s.Python, "-m", "sglang.launch_server"}, args...)
}

// Args are the arguments of an ordinary launch of the stage's model on tp GPUs
// with the mixture-of-experts backend that the founding patch is about.
func (s *Stage) Args(tp, port int) []string {
	return []string{
		"--model-path", s.Model, "--tp", strconv.Itoa(tp), "--port", strconv.Itoa(port),
		"--quantization", "modelopt_fp4", "--moe-runner-backend", "flashinfer_cutlass",
	}
}

// Env lists the variables, NAME=value, that the server's environment needs in
// addition. The scenarios are played together; none means a healthy server.
// The same variables serve whoever loads the stand-in NVML library.
func (s *Stage) Env(scenarios ...Scenario) []string {
	names, starts := []string{}, 0
	for _, sc := range scenarios {
		names = append(names, sc.Name)
		starts = max(starts, sc.Starts)
	}
	env := []string{
		"SGLAUNCH_REHEARSAL=" + strings.Join(names, ","),
		"SGLAUNCH_REHEARSAL_STARTS=" + strconv.Itoa(starts),
		"SGLAUNCH_REHEARSAL_SPEED=" + strconv.FormatFloat(s.Speed, 'g', -1, 64),
		"SGLAUNCH_REHEARSAL_STATE=" + s.State,
		"SGLAUNCH_REHEARSAL_NVML=" + s.Board,
		"SGLANG_CACHE_DIR=" + s.Cache, // what the server would keep in the home folder
	}
	if s.Lib != "" {
		path := s.Lib
		if old := os.Getenv("LD_LIBRARY_PATH"); old != "" {
			path += string(os.PathListSeparator) + old
		}
		env = append(env, "LD_LIBRARY_PATH="+path)
	}
	return env
}
