package sglangcmd

import (
	"strings"
	"testing"
)

func TestChangeFlags(t *testing.T) {
	const base = "python -m sglang.launch_server --tp 8 --cuda-graph-bs 1 2 4 --port=30000 --trust-remote-code"
	for _, c := range []struct{ name, words, want string }{
		{"--tp", "4", "python -m sglang.launch_server --cuda-graph-bs 1 2 4 --port=30000 --trust-remote-code --tp 4"},
		{"--cuda-graph-bs", "8 16", "python -m sglang.launch_server --tp 8 --port=30000 --trust-remote-code --cuda-graph-bs 8 16"},
		{"--port", "1", "python -m sglang.launch_server --tp 8 --cuda-graph-bs 1 2 4 --trust-remote-code --port 1"},
		{"--enable-x", "", base + " --enable-x"},
		{"--trust-remote-code", "", base},
	} {
		got := strings.Join(WithFlag(strings.Fields(base), c.name, strings.Fields(c.words)...), " ")
		if got != c.want {
			t.Errorf("%s %s:\n%s\nwant\n%s", c.name, c.words, got, c.want)
		}
	}
	for name, want := range map[string]string{
		"--trust-remote-code": "python -m sglang.launch_server --tp 8 --cuda-graph-bs 1 2 4 --port=30000",
		"--cuda-graph-bs":     "python -m sglang.launch_server --tp 8 --port=30000 --trust-remote-code",
		"--absent":            base,
	} {
		if got := strings.Join(WithoutFlag(strings.Fields(base), name), " "); got != want {
			t.Errorf("without %s: %s", name, got)
		}
	}
}
