package rehearsal

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/creack/pty"
)

func TestInterpreterFindsThePackageAsPipInstalledIt(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 20)
	out, err := exec.Command(s.Python, "-c", `
import importlib.metadata, importlib.util, sys
spec = importlib.util.find_spec("sglang")
files = importlib.metadata.files("sglang")
bad = [str(f) for f in files if f.hash and f.hash.mode == "sha256" and f.read_binary() and
       __import__("base64").urlsafe_b64encode(__import__("hashlib").sha256(f.read_binary()).digest()).rstrip(b"=").decode() != f.hash.value]
print(importlib.metadata.version("sglang"), spec.submodule_search_locations[0], sys.prefix != sys.base_prefix, len(files) > 20, bad, "sglang" in sys.modules)
`).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got, want := strings.TrimSpace(string(out)), "0.5.9 "+s.Site+"/sglang True True [] False"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestConsoleScript(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 100)
	port := freePort(t)
	p := start(t, port, []string{filepath.Join(s.Bin, "sglang"), "serve", s.Model, "--port", strconv.Itoa(port)}, s.Env())
	p.sees(ready)
	if out, err := exec.Command(filepath.Join(s.Bin, "sglang"), "version").Output(); err != nil || string(out) != "sglang version: 0.5.9\n" {
		t.Errorf("version: %q, %v", out, err)
	}
}

func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 20)
	for _, c := range []struct {
		name string
		dir  string
		o    Options
		want string
	}{
		{"an unknown release", t.TempDir(), Options{Version: "0.4.1"}, `cannot play SGLang "0.4.1": known are 0.5.7, `},
		{"a missing interpreter", t.TempDir(), Options{Python: "no-such-python"}, `cannot find "no-such-python": install python3`},
		{"a program that is no interpreter", t.TempDir(), Options{Python: "false"}, "for its version"},
		{"a program that says nothing", t.TempDir(), Options{Python: "true"}, "cannot read the answer"},
		{"a second stage in one folder", s.Dir, Options{}, "it holds a stage already"},
		{"a negative speed", t.TempDir(), Options{Speed: -1}, "must be above 0"},
		{"too many GPUs", t.TempDir(), Options{GPUs: 65}, "1 to 64 are possible"},
		{"no shard", t.TempDir(), Options{Shards: -1}, "1 to 2000 are possible"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Build(c.dir, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
	if _, err := Build(t.TempDir(), Options{Python: "no-such-python"}); !errors.Is(err, ErrNoPython) {
		t.Errorf("%v is not ErrNoPython", err)
	}
}

func TestBuildWithoutPrograms(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := BuildNVML(t.TempDir()); !errors.Is(err, ErrNoCompiler) || !strings.Contains(err.Error(), "install a C compiler") {
		t.Errorf("got %v, want ErrNoCompiler", err)
	}
	if _, err := Build(t.TempDir(), Options{}); !errors.Is(err, ErrNoPython) {
		t.Errorf("got %v, want ErrNoPython", err)
	}
}

// On a terminal bars are redrawn in place, as wide as it is, and uvicorn has colours.
func TestOutputOnATerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		version string
		columns uint16
		wants   []string
		never   string
	}{
		{"wide", "", 250, []string{
			"\rLoading safetensors checkpoint shards:   0% Completed | 0/62 [00:00<?, ?it/s]\r\n",
			"\rCapturing batches (bs=256 avail_mem=26.86 GB):   0%|" + strings.Repeat(" ", 100),
		}, "\x1b[A"},
		{"no size", "", 0, []string{"\rLoading safetensors checkpoint shards:   0% 0/62 [00:00<?, ?it/s]"}, " Completed |"},
		{"later release", "0.5.10", 250, []string{"\rMulti-thread loading shards:   0% Completed | 0/62 [00:00<?, ?it/s]\r"}, "Loading safetensors"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := stageFor(t, c.version, 100)
			out := onTerminal(t, s, c.columns)
			for _, want := range append(c.wants, "] \x1b[32mINFO\x1b[0m:     Uvicorn running on ") {
				if !strings.Contains(out, want) || strings.Contains(out, c.never) {
					t.Errorf("want %q, never %q; output:\n%q", want, c.never, out)
				}
			}
		})
	}
}

// onTerminal runs the server in a terminal until it is ready, and returns its output.
func onTerminal(t *testing.T, s *Stage, columns uint16) string {
	t.Helper()
	command := s.Command(append(launchArgs(s, 1), "--port", strconv.Itoa(freePort(t)))...)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), s.Env()...)
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: columns / 4, Cols: columns})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	var out bytes.Buffer
	buf := make([]byte, 1<<16)
	for !strings.Contains(out.String(), ready) {
		n, err := terminal.Read(buf)
		out.Write(buf[:n])
		if err != nil {
			break
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return out.String()
}
