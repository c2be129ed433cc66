package tune

import (
	"testing"

	"sglaunch/phases"
)

// A class speaks of causes that the vocabulary has; any other is unexplained.
func TestClassesKnowTheVocabulary(t *testing.T) {
	for cause := range classes {
		if _, ok := phases.LookupCause(cause); !ok {
			t.Errorf("there is no cause %q", cause)
		}
	}
}

// TestClassOfAnEnd: the cause decides; where there is none, how the launch ended.
func TestClassOfAnEnd(t *testing.T) {
	tests := []struct {
		name string
		end  Ended
		want string // "" = no failure
	}{
		{"stopped as asked", Ended{Outcome: "stopped"}, ""},
		{"a cause", Ended{Outcome: "timed_out", Cause: "load_hang"}, "stall"},
		{"too slow, nobody knows why", Ended{Outcome: "timed_out"}, "slow"},
		{"hung, nobody knows where", Ended{Outcome: "hung"}, "stall"},
		{"crashed, nobody knows why", Ended{Outcome: "crashed"}, "unexplained"},
		{"a cause that no class speaks of", Ended{Outcome: "crashed", Cause: "segfault"}, "unexplained"},
		{"refused before the start", Ended{Outcome: "refused"}, "environment"},
		{"refused for its own argument", Ended{Outcome: "refused", Cause: "bad_argument"}, "argument"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if c, failed := ClassOf(tt.end); c.Name != tt.want || failed != (tt.want != "") {
				t.Errorf("want class %q, got %q, a failure: %t", tt.want, c.Name, failed)
			}
		})
	}
}

// TestWhatFailuresTeach: which trials a failure shows to fail too.
func TestWhatFailuresTeach(t *testing.T) {
	base := map[string]Value{"--mem-fraction-static": TextValue("0.85"), "--attention-backend": TextValue("fa3")}
	const mem, back, tp, offload = "--mem-fraction-static", "--attention-backend", "--tp", "--cpu-offload-gb"
	tests := []struct {
		name   string
		cause  string
		failed map[string]string
		other  map[string]string
		teach  bool
	}{
		{"more memory", "oom_graph_capture", map[string]string{mem: "0.9"}, map[string]string{mem: "0.95"}, true},
		{"less memory", "oom_graph_capture", map[string]string{mem: "0.9"}, map[string]string{mem: "0.88"}, false},
		{"the base's memory", "oom_graph_capture", map[string]string{mem: "0.8"}, map[string]string{"--cuda-graph-max-bs": "8"}, false},
		{"another backend", "oom_graph_capture", map[string]string{mem: "0.9"}, map[string]string{mem: "0.95", back: "triton"}, false},
		{"the base's backend, said again", "oom_graph_capture", map[string]string{mem: "0.9"}, map[string]string{mem: "0.95", back: "fa3"}, true},
		{"more memory and larger graphs", "oom_graph_capture", map[string]string{mem: "0.9", "--cuda-graph-max-bs": "64"}, map[string]string{mem: "0.95", "--cuda-graph-max-bs": "128"}, true},
		{"more memory, smaller graphs", "oom_graph_capture", map[string]string{mem: "0.9", "--cuda-graph-max-bs": "64"}, map[string]string{mem: "0.95", "--cuda-graph-max-bs": "32"}, false},
		{"more offload", "oom_kv_cache", map[string]string{offload: "8"}, map[string]string{offload: "16"}, false},
		{"less offload", "oom_kv_cache", map[string]string{offload: "8"}, map[string]string{offload: "4"}, true},
		{"too small a pool: smaller", "mem_fraction_too_low", map[string]string{mem: "0.7"}, map[string]string{mem: "0.6"}, true},
		{"too small a pool: larger", "mem_fraction_too_low", map[string]string{mem: "0.7"}, map[string]string{mem: "0.8"}, false},
		{"weights: fewer GPUs", "oom_weights", map[string]string{tp: "4"}, map[string]string{tp: "2"}, true},
		{"weights: more GPUs", "oom_weights", map[string]string{tp: "4"}, map[string]string{tp: "8"}, false},
		{"weights: not by the memory fraction", "oom_weights", map[string]string{tp: "4", mem: "0.8"}, map[string]string{tp: "4", mem: "0.9"}, false},
		{"load: larger chunks", "oom_runtime", map[string]string{"--chunked-prefill-size": "8192"}, map[string]string{"--chunked-prefill-size": "16384"}, true},
		{"empty text is not the base's unknown value", "oom_graph_capture", map[string]string{mem: "0.9", "--x": ""}, map[string]string{mem: "0.95"}, false},
		{"an axis without an order", "oom_runtime", map[string]string{"--x": "1"}, map[string]string{"--x": "2"}, false},
		{"the same backend", "no_kernel_image", map[string]string{back: "triton", mem: "0.9"}, map[string]string{back: "triton", mem: "0.8"}, true},
		{"another choice of backend", "no_kernel_image", map[string]string{back: "triton"}, map[string]string{back: "flashinfer"}, false},
		{"the same backend and others besides", "no_kernel_image", map[string]string{back: "triton"}, map[string]string{back: "triton", "--moe-runner-backend": "x"}, false},
		{"the base's backend", "no_kernel_image", map[string]string{mem: "0.9"}, map[string]string{mem: "0.95"}, false},
		{"the same patches", "jit_compile_failed", map[string]string{"patches": "a"}, map[string]string{"patches": "a", mem: "0.9"}, true},
		{"wrong output: another quantization", "output_corrupt", map[string]string{back: "triton"}, map[string]string{back: "triton", "--quantization": "fp8"}, false},
		{"environment", "disk_full", map[string]string{mem: "0.9"}, map[string]string{mem: "0.95"}, false},
		{"a stall", "load_hang", map[string]string{mem: "0.9"}, map[string]string{mem: "0.95"}, false},
		{"unexplained", "segfault", map[string]string{mem: "0.9"}, map[string]string{mem: "0.95"}, false},
		{"the only argument", "bad_argument", map[string]string{"--x": "1"}, map[string]string{"--x": "1", "--y": "1"}, true},
		{"another value of it", "bad_argument", map[string]string{"--x": "1"}, map[string]string{"--x": "2"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := &Night{plan: Planned{Study: DefaultStudy(), Base: base}}
			e := Ended{Outcome: "crashed", Cause: tt.cause}
			c, _ := ClassOf(e)
			failed, other := newTrial("", texts(tt.failed), 0), newTrial("", texts(tt.other), 0)
			if text, yes := n.taught(failed, c, e, other); yes != tt.teach {
				t.Errorf("%s: got %t, %q", c.Name, yes, text)
			}
		})
	}
}

func texts(set map[string]string) map[string]Value {
	values := map[string]Value{}
	for axis, text := range set {
		values[axis] = TextValue(text)
	}
	return values
}

func TestBlame(t *testing.T) {
	tests := []struct {
		text, axis string
		want       bool
	}{
		{"argument --foo: invalid choice", "--foo", true},
		{"argument --foo-bar: invalid choice", "--foo", false},
		{"argument --my-foo: invalid", "--foo", false},
		{"ValueError: mem_fraction_static must be below 1", "--mem-fraction-static", true},
		{"SGLANG_X is no number", "$SGLANG_X", true},
		{"foo--foo", "--foo", false},
		{"argument --foo2: invalid", "--foo", false},
		{"argument --foo_x: invalid", "--foo", false},
		{"", "--foo", false},
	}
	for _, tt := range tests {
		if got := blames(tt.text, tt.axis); got != tt.want {
			t.Errorf("%q blames %s: got %t", tt.text, tt.axis, got)
		}
	}
}
