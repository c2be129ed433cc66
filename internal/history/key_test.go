package history

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFlagsDigest(t *testing.T) {
	base := []string{"--model-path", "/m", "--tp", "8", "--quantization", "modelopt_fp4"}
	env := []string{"SGLANG_X=1", "HOME=/root"}
	for _, test := range []struct {
		why       string
		args, env []string
		same      bool
	}{
		{"order and spelling", []string{"--quantization=modelopt_fp4", "--tp=8", "--model-path", "/elsewhere"}, env, true},
		{"ports, names and keys", append([]string{"--port", "1", "--api-key", "s3cret", "--served-model-name", "x"}, base...), env, true},
		{"said twice", append([]string{"--tp", "8"}, base...), env, true},
		{"variables of no weight", base, append([]string{"HF_TOKEN=x", "SGLANG_LOG_MS=1", "SGLANG_API_KEY=x", "PATH=/bin"}, env...), true},
		{"another value", []string{"--tp", "4", "--quantization", "modelopt_fp4"}, env, false},
		{"one flag less", base[:4], env, false},
		{"a switch", append([]string{"--disable-cuda-graph"}, base...), env, false},
		{"several values", append([]string{"--cuda-graph-bs", "1", "2"}, base...), env, false},
		{"a negative value", append([]string{"--chunked-prefill-size", "-1"}, base...), env, false},
		{"a variable of SGLang", base, []string{"SGLANG_X=0"}, false},
		{"a variable of NCCL", base, append([]string{"NCCL_P2P_DISABLE=1"}, env...), false},
	} {
		if same := FlagsDigest(test.args, test.env) == FlagsDigest(base, env); same != test.same {
			t.Errorf("%s: the same digest: %v, want %v", test.why, same, test.same)
		}
	}
	if got := FlagsDigest([]string{"--a", "1", "2"}, nil); got == FlagsDigest([]string{"--a", "2", "1"}, nil) {
		t.Error("the order of values is lost")
	}
}

func TestMachine(t *testing.T) {
	dir := t.TempDir()
	one, two, none := filepath.Join(dir, "1"), filepath.Join(dir, "2"), filepath.Join(dir, "3")
	for path, text := range map[string]string{one: "1111\n", two: "2222\n", none: "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gpus, turned := []string{"GPU-a", "GPU-b"}, []string{"GPU-b", "GPU-a"}
	if machine([]string{one, two}, gpus) != machine([]string{one, none}, turned) {
		t.Error("the order of GPUs, or what comes after the first id, matters")
	}
	if machine([]string{none, one}, gpus) != machine([]string{one}, gpus) {
		t.Error("an empty id hides the next")
	}
	seen := map[string]string{}
	for what, id := range map[string]string{
		"machine 1": machine([]string{one}, gpus), "machine 2": machine([]string{two}, gpus),
		"no id": machine([]string{none}, gpus), "other GPUs": machine([]string{one}, nil),
	} {
		if seen[id] != "" {
			t.Errorf("%s and %s are one", what, seen[id])
		}
		seen[id] = what
	}
	if machine([]string{none}, nil) != machine([]string{filepath.Join(dir, "missing")}, nil) {
		t.Error("an empty id is not like none")
	}
	if Machine(gpus) == "" || gpus[0] != "GPU-a" {
		t.Error(gpus)
	}
}

func TestPatchSet(t *testing.T) {
	if got := PatchSet([]string{"b", "a", "b"}); got != "a b" {
		t.Errorf("got %q", got)
	}
	if got := PatchSet(nil); got != "" {
		t.Errorf("got %q", got)
	}
	if got := (Key{Patches: PatchSet([]string{"b", "a"})}).PatchNames(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %q", got)
	}
}

func TestSameServer(t *testing.T) {
	other := key
	other.Patches, other.Caches = "", Caches{}
	if !key.SameServer(other) {
		t.Error("patches and caches make another server")
	}
	other.Version = "0.5.11"
	if key.SameServer(other) {
		t.Error("another version is the same server")
	}
}
