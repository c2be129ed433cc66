package conduct

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sglaunch/internal/tune"
	"sglaunch/internal/tune/bench"
)

// Another version of the client, or another script, makes figures that are not
// compared with those of before.
func TestClientFact(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("bin/vllm", "#!"+python+"\nimport vllm\n", 0o755)
	write("lib/vllm/__init__.py", "", 0o644)
	write("lib/vllm-0.19.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: vllm\nVersion: 0.19.0\n", 0o644)
	write("mine.py", "print(1)\n", 0o644)
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("PYTHONPATH", filepath.Join(dir, "lib"))
	s := &site{folder: dir, dir: dir, study: tune.Study{Loads: []tune.Load{{Name: "chat", Bench: bench.VLLM}, {Name: "sum", Bench: bench.Serving}}}}
	if got := s.clientFact(t.Context()); got != "chat vllm 0.19.0" {
		t.Errorf("%q", got)
	}
	s.study.Loads = []tune.Load{{Name: "own", Bench: bench.Own, Command: []string{"python3", "mine.py", "--port={port}"}}}
	before := s.clientFact(t.Context())
	if again := s.clientFact(t.Context()); again != before {
		t.Errorf("%q, then %q", before, again)
	}
	write("mine.py", "print(2)\n", 0o644)
	if after := s.clientFact(t.Context()); after == before {
		t.Errorf("another script is %q, too", after)
	}
}
