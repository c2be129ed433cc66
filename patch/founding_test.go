package patch

import (
	"fmt"
	"strings"
	"testing"
)

// The founding patch, on packages made for the test in the shapes that SGLang
// has had; the real releases are tried in CI.

const founding = "flashinfer-cutlass-autotune"

// gate is a decision function of the given list entries, with the indentation
// of a method or of a module function.
func gate(def, indent string, entries ...string) string {
	var b strings.Builder
	line := func(depth int, format string, args ...any) {
		fmt.Fprintf(&b, "%s%s%s\n", indent, strings.Repeat("    ", depth), fmt.Sprintf(format, args...))
	}
	line(0, "def %s -> bool:", def)
	line(1, `"""Whether tuning runs, e.g. for "flashinfer_cutlass"."""`)
	line(1, "backend_str = settings.moe_runner_backend")
	line(1, "if backend_str not in [")
	for _, e := range entries {
		line(2, "%s", e)
	}
	line(1, "]:")
	line(2, "return False")
	line(1, "return True")
	return b.String()
}

const (
	todo     = "# TODO: flashinfer_cutlass does not compile everywhere."
	commentd = `# "flashinfer_cutlass",`
	active   = `"flashinfer_cutlass",`
)

func runner(method string) string {
	return "class ModelRunner:\n    mode = \"flashinfer_cutlass\",\n\n" + method + "\n    def _flashinfer_autotune(self):\n        pass\n"
}

// sglangShapes are the files of each family, and the state that the patch has there.
var sglangShapes = []struct {
	version string
	files   map[string]string
	state   State
	file    string
}{
	{"0.5.3", map[string]string{"model_runner.py": runner("    def load(self):\n        pass\n")}, Unsupported, "model_runner.py"},
	{"0.5.6.post2", map[string]string{"model_runner.py": runner(gate("_should_run_flashinfer_autotune(self)", "    ", `"flashinfer",`, `"trtllm_mla",`))}, Unsupported, "model_runner.py"},
	{"0.5.7", map[string]string{"model_runner.py": runner(gate("_should_run_flashinfer_autotune(self)", "    ", `"flashinfer_trtllm",`, todo, commentd))}, Pristine, "model_runner.py"},
	{"0.5.8.post1", map[string]string{"model_runner.py": runner(gate("_should_run_flashinfer_autotune(self)", "    ", `"flashinfer_mxfp4",`, todo, commentd))}, Pristine, "model_runner.py"},
	{"0.5.9", map[string]string{"model_runner.py": runner(gate("_should_run_flashinfer_autotune(self)", "    ", todo, "# TODO smor-: later", commentd))}, Pristine, "model_runner.py"},
	{"0.5.10.post1", map[string]string{"model_runner.py": runner(gate("_should_run_flashinfer_autotune(self)", "    ", "# TODO: routed", `# "flashinfer_trtllm_routed",`, todo, commentd))}, Pristine, "model_runner.py"},
	{"0.5.12.post1", map[string]string{"model_runner.py": runner(gate("_should_run_flashinfer_autotune(self)", "    ", `"flashinfer_cutedsl",`, todo, commentd))}, Pristine, "model_runner.py"},
	{"0.5.12.post1+cu130", map[string]string{"model_runner.py": runner(gate("_should_run_flashinfer_autotune(self)", "    ", todo, commentd))}, Pristine, "model_runner.py"},
	{"0.5.13", map[string]string{"model_runner.py": runner(gate("_should_run_flashinfer_autotune(self)", "    ", `"flashinfer_trtllm_routed",`, active))}, Obsolete, "model_runner.py"},
	{"0.5.13.post1", map[string]string{"model_runner.py": runner(gate("_should_run_flashinfer_autotune(self)", "    ", `"flashinfer_trtllm", "flashinfer_cutlass", "flashinfer_mxfp4",`))}, Obsolete, "model_runner.py"},
	{"0.5.14", map[string]string{"model_runner.py": runner(""), "runner/base_runner.py": "class BaseRunner:\n" + gate("_should_run_flashinfer_autotune(self)", "    ", active)}, Obsolete, "runner/base_runner.py"},
	{"0.5.17", map[string]string{"model_runner.py": runner(""), "runner/base_runner.py": "class BaseRunner:\n    pass\n", "runner/flashinfer_autotune.py": gate("should_run_flashinfer_autotune(settings)", "", active)}, Obsolete, "runner/flashinfer_autotune.py"},
	{"0.5.13.dev20260601", map[string]string{"model_runner.py": runner(""), "model_runner_components/kernel_warmup.py": gate("_should_run_flashinfer_autotune(settings)", "", todo, commentd)}, Pristine, "model_runner_components/kernel_warmup.py"},
	{"0.0.0", map[string]string{"model_runner.py": runner(gate("_should_run_flashinfer_autotune(self)", "    ", todo, commentd))}, Pristine, "model_runner.py"},
	// A release that needs the patch, whose function is not the known one.
	{"0.5.8", map[string]string{"model_runner.py": runner(gate("_should_run_flashinfer_autotune(self)", "    ", `"something_else",`))}, Drifted, "model_runner.py"},
	// The entry twice: which is meant is not clear.
	{"0.5.9", map[string]string{"model_runner.py": runner(gate("_should_run_flashinfer_autotune(self)", "    ", commentd, commentd))}, Drifted, "model_runner.py"},
	// Two commented-out signs would leave a comment behind.
	{"0.5.9", map[string]string{"model_runner.py": runner(gate("_should_run_flashinfer_autotune(self)", "    ", "# "+commentd))}, Drifted, "model_runner.py"},
	// A fork that has the decision in two places.
	{"0.0.0", map[string]string{
		"model_runner.py":                          runner(gate("_should_run_flashinfer_autotune(self)", "    ", commentd)),
		"model_runner_components/kernel_warmup.py": gate("_should_run_flashinfer_autotune(settings)", "", commentd),
	}, Drifted, "model_runner.py"},
}

const executor = "sglang/srt/model_executor/"

func (v *venv) installSGLang(version string, files map[string]string) {
	all := map[string]string{"sglang/__init__.py": "raise SystemExit('a plan must not import the package')\n"}
	for name, text := range files {
		all[executor+name] = text
	}
	v.install("sglang", version, all)
}

func TestFoundingPatchOnEveryFamily(t *testing.T) {
	t.Parallel()
	for _, shape := range sglangShapes {
		t.Run(shape.version+" "+string(shape.state), func(t *testing.T) {
			v := newVenv(t)
			v.installSGLang(shape.version, shape.files)
			before := snapshot(t, v.root)
			l := ledger(t)
			p := plan(t, l, v, Patch{Use: founding})
			got := p.Targets[0]
			if got.State != shape.state || got.Path != v.path(executor+shape.file) {
				t.Fatalf("%s is %s (%s), want %s of %s", got.Path, got.State, got.Reason, shape.state, shape.file)
			}
			if lets := shape.state == Pristine || shape.state == Obsolete; got.Refused == lets {
				t.Errorf("refused is %v: %s", got.Refused, got.Reason)
			}
			if got.Version != shape.version {
				t.Errorf("version is %q", got.Version)
			}
			if shape.state != Pristine {
				return
			}
			apply(t, l, p, "night")
			text := shape.files[shape.file]
			at := strings.LastIndex(text, commentd)
			want := text[:at] + active + text[at+len(commentd):]
			if patched := readText(t, got.Path); patched != want {
				t.Errorf("patched file:\n%s", patched)
			}
			revert(t, l, "night")
			same(t, before, snapshot(t, v.root))
		})
	}
}

// A search for the word would take the commented line, and the docstring, for
// the change.
func TestCommentIsNotTheChange(t *testing.T) {
	t.Parallel()
	v := newVenv(t)
	v.installSGLang("0.5.8", map[string]string{"model_runner.py": runner(gate("_should_run_flashinfer_autotune(self)", "    ", todo, commentd))})
	if got := plan(t, nil, v, Patch{Use: founding}).Targets[0].State; got != Pristine {
		t.Errorf("state is %s", got)
	}
}

// Somebody un-commented the entry by hand: nothing to do, and nothing of theirs
// is undone.
func TestAppliedByHand(t *testing.T) {
	t.Parallel()
	file := executor + "model_runner.py"
	for name, test := range map[string]struct {
		more  string
		state State
	}{
		"just that":     {"", WasApplied},
		"and more edit": {"\nx = 1\n", AppliedForeign},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVenv(t)
			v.installSGLang("0.5.8", map[string]string{"model_runner.py": runner(gate("_should_run_flashinfer_autotune(self)", "    ", todo, commentd))})
			v.write(v.path(file), runner(gate("_should_run_flashinfer_autotune(self)", "    ", todo, active))+test.more)
			before := snapshot(t, v.root)
			l := ledger(t)
			p := plan(t, l, v, Patch{Use: founding})
			if got := p.Targets[0]; got.State != test.state || got.Refused {
				t.Errorf("target is %s, refused %v: %s", got.State, got.Refused, got.Reason)
			}
			apply(t, l, p, "night")
			revert(t, l, "night")
			same(t, before, snapshot(t, v.root))
		})
	}
}

func TestNotInstalled(t *testing.T) {
	t.Parallel()
	got := plan(t, nil, newVenv(t), Patch{Use: founding}).Targets[0]
	if got.State != Missing || !got.Refused {
		t.Errorf("target is %+v", got)
	}
}

func TestFoundingPreconditions(t *testing.T) {
	t.Parallel()
	p, _ := Shipped(founding)
	for args, met := range map[string]bool{
		"--moe-runner-backend flashinfer_cutlass":                             true,
		"--moe-runner-backend=flashinfer_cutlass --quantization modelopt_fp4": true,
		"":                          false,
		"--moe-runner-backend auto": false,
		"--moe-runner-backend flashinfer_cutlass --disable-flashinfer-autotune": false,
		"--moe-runner-backend flashinfer_cutlass --quantization fp8":            false,
		"--moe-runner-backend triton --moe-runner-backend flashinfer_cutlass":   true,
	} {
		if why := p.Unmet(strings.Fields(args)); (why == "") != met {
			t.Errorf("%q: %q", args, why)
		}
	}
}
