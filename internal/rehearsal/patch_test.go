package rehearsal

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// entry is the anchor of the founding patch: the commented entry of the list.
var entry = regexp.MustCompile(`(?m)^(\s*)# ("flashinfer_cutlass",)\s*$`)

// patchedStage copies the installation of s and un-comments the entry in it.
func patchedStage(t *testing.T, s *Stage) *Stage {
	t.Helper()
	dir := t.TempDir()
	venv := filepath.Dir(s.Bin)
	if out, err := exec.Command("cp", "-a", venv, dir).CombinedOutput(); err != nil {
		t.Fatalf("cannot copy the environment: %v: %s", err, out)
	}
	moved := *s
	for _, path := range []*string{&moved.Python, &moved.Bin, &moved.Site} {
		rel, err := filepath.Rel(venv, *path)
		if err != nil {
			t.Fatal(err)
		}
		*path = filepath.Join(dir, "venv", rel)
	}
	file := filepath.Join(moved.Site, "sglang/srt/model_executor/model_runner.py")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(entry.FindAll(text, -1)); n != 1 {
		t.Fatalf("%d anchors in %s, want 1", n, file)
	}
	if err := os.WriteFile(file, entry.ReplaceAll(text, []byte("$1$2")), 0o644); err != nil {
		t.Fatal(err)
	}
	return &moved
}

func TestTheDecisionIsFollowed(t *testing.T) {
	t.Parallel()
	begin, end := "Running FlashInfer autotune", "FlashInfer autotune completed."
	for _, c := range []struct {
		name, version string
		patch         bool
		args          []string
		tunes         int // ranks
	}{
		{name: "unpatched", tunes: 0},
		{name: "patched", patch: true, tunes: 2},
		{name: "patched, switched off", patch: true, args: []string{"--disable-flashinfer-autotune"}, tunes: 0},
		{name: "patched, with bars", version: "0.5.11", patch: true, tunes: 2},
		{name: "patched, with a cache", version: "0.5.12", patch: true, tunes: 2},
		{name: "not needed", version: "0.5.13", tunes: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := stageFor(t, c.version, 100)
			if c.patch {
				s = patchedStage(t, s)
			}
			p := play(t, s, append(launchArgs(s, 2), c.args...))
			p.sees(ready)
			out, _ := p.output()
			if n := strings.Count(out, begin); n != c.tunes {
				t.Errorf("%q printed by %d ranks, want %d", begin, n, c.tunes)
			}
			if n := strings.Count(out, end); n != c.tunes {
				t.Errorf("%q printed by %d ranks, want %d", end, n, c.tunes)
			}
			bars := strings.Contains(out, "[AutoTuner]: Tuning trtllm::fused_moe::gemm2: 100%|")
			if want := c.tunes > 0 && c.version != ""; bars != want {
				t.Errorf("bars %v, want %v; output:\n%s", bars, want, out)
			}
			files, err := filepath.Glob(filepath.Join(s.Cache, "flashinfer/autotune/*/sm100/*/rank_tp*_pp0_dp0.json"))
			if want := c.tunes * strings.Count(out, begin+" with cache: ") / max(1, c.tunes); err != nil || len(files) != want {
				t.Errorf("cache files %v, want %d; %v", files, want, err)
			}
			if cached := strings.Contains(out, begin+" with cache: "); cached != (c.version == "0.5.12" || c.version == "0.5.13") {
				t.Errorf("a cache is named: %v", cached)
			}
		})
	}
}

func TestDecisionListOfEveryVersion(t *testing.T) {
	t.Parallel()
	content, err := pythonFiles.ReadFile("python/sglang/srt/model_executor/model_runner.py")
	if err != nil {
		t.Fatal(err)
	}
	active := regexp.MustCompile(`(?m)^\s*"flashinfer_cutlass",$`)
	for _, version := range Versions() {
		text, err := asVersion("sglang/srt/model_executor/model_runner.py", content, version)
		if err != nil {
			t.Fatal(err)
		}
		anchors, entries := len(entry.FindAll(text, -1)), len(active.FindAll(text, -1))
		if want := version != "0.5.13"; want != (anchors == 1) || want != (entries == 0) {
			t.Errorf("%s: %d anchors, %d active entries", version, anchors, entries)
		}
		if version == DefaultVersion && string(text) != string(content) {
			t.Errorf("the embedded file is not that of %s", version)
		}
	}
}
