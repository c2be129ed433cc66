package sglangcmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		argv    string // words; a part in quotes is one word
		form    Form
		python  string
		wrapper string
		args    string
	}{
		{"python -m sglang.launch_server --tp 8", Module, "python", "", "--tp 8"},
		{"/venv/bin/python3.12 -u -X dev -W ignore -msglang.launch_server --tp 8", Module, "/venv/bin/python3.12", "", "--tp 8"},
		{"sglang serve Qwen/Qwen3-8B --tp 2", Serve, "", "", "Qwen/Qwen3-8B --tp 2"},
		{"/venv/bin/sglang serve --model-path /m", Serve, "", "", "--model-path /m"},
		{"python3 /venv/bin/sglang serve /m", Serve, "python3", "", "/m"},
		{"python3 -m sglang.cli.main serve /m", Serve, "python3", "", "/m"},
		{"python3 ./python/sglang/launch_server.py --tp 2", Script, "python3", "", "--tp 2"},
		{"env A=1 python3 -m sglang.launch_server", Module, "python3", "", ""},
		{"A=1 python3 -m sglang.launch_server", Module, "python3", "", ""},
		{"numactl --cpunodebind=0 --membind=0 python3 -m sglang.launch_server", Module, "python3", "", ""},
		{"uv run --python 3.12 python -m sglang.launch_server --tp 4", Module, "python", "uv", "--tp 4"},
		{"uv run -m sglang.launch_server --tp 4", Module, "", "uv", "--tp 4"},
		{"conda run -n llm --no-capture-output python -m sglang.launch_server", Module, "python", "conda", ""},
		{"nsys profile -o out python -m sglang.launch_server", Module, "python", "", ""},
		{"srun -N2 numactl -l python -m sglang.launch_server", Module, "python", "srun", ""},
		{"bash -lc 'exec python -m sglang.launch_server --tp 8'", Module, "python", "bash", "--tp 8"},
		{"sh -c 'M=/models/glm; cd /tmp && python -m sglang.launch_server --model-path $M --port ${PORT:-30001}'", Module, "python", "sh", "--model-path /models/glm --port 30001"},
		{`sh -c 'exec python -m sglang.launch_server "$@"' sh --tp 8`, Module, "python", "sh", "--tp 8"},
		{"sh -c 'if true; then python -m sglang.launch_server; fi'", Module, "python", "sh", ""},
		{"sh -c \"sh -c 'sglang serve /m'\"", Serve, "", "sh", "/m"},

		{"python -m sglang.bench_serving", Unknown, "", "", ""},
		{"python -m vllm.entrypoints.openai.api_server", Unknown, "", "", ""},
		{"python my_server.py -m sglang.launch_server", Unknown, "", "", ""},
		{"python -c 'import sglang'", Unknown, "", "", ""},
		{"sglang generate", Unknown, "", "", ""},
		{"sglang", Unknown, "", "", ""},
		{"python", Unknown, "", "", ""},
		{"sleep 10", Unknown, "", "", ""},
		{"sh -c 'echo ('", Unknown, "", "", ""},
		{"sh -c", Unknown, "", "", ""},
		{"sh", Unknown, "", "", ""},
		{"env", Unknown, "", "", ""},
		{"", Unknown, "", "", ""},
	} {
		t.Run(c.argv, func(t *testing.T) {
			got := Parse(words(c.argv), nil, "/srv")
			if got.Form != c.form || got.Python != c.python || got.Wrapper != c.wrapper {
				t.Errorf("got %q by %q in %q, want %q by %q in %q", got.Form, got.Python, got.Wrapper, c.form, c.python, c.wrapper)
			}
			if args := strings.Join(got.Args, " "); args != c.args {
				t.Errorf("got the arguments %q, want %q", args, c.args)
			}
		})
	}
}

// words splits at blanks; quotes keep a part together.
func words(line string) []string {
	var out []string
	var word strings.Builder
	quote, inside := rune(0), false
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, inside = r, true
		case quote == 0 && r == ' ':
			if inside || word.Len() > 0 {
				out = append(out, word.String())
			}
			word.Reset()
			inside = false
		default:
			word.WriteRune(r)
		}
	}
	return out
}

func TestEnvironmentOnTheWay(t *testing.T) {
	given := []string{"HOME=/root", "CUDA_VISIBLE_DEVICES=7"}
	for _, c := range []struct {
		argv string
		want []string
		dir  string
	}{
		{"env -u HOME CUDA_VISIBLE_DEVICES=1,2 python -m sglang.launch_server", []string{"CUDA_VISIBLE_DEVICES=7", "CUDA_VISIBLE_DEVICES=1,2"}, "/srv"},
		{"env -i A=1 python -m sglang.launch_server", []string{"A=1"}, "/srv"},
		{"env -C sub python -m sglang.launch_server", given, "/srv/sub"},
		{"sh -c 'export A=1 B=$HOME/x; C=3; python -m sglang.launch_server'", append(given[:2:2], "A=1", "B=/root/x"), "/srv"},
		{"sh -c 'HOME=/h; export C; D=4 python -m sglang.launch_server'", append(given[:2:2], "HOME=/h", "D=4"), "/srv"},
		{"sh -c 'cd /a && cd b && python -m sglang.launch_server'", given, "/a/b"},
		{"sh -c 'export T=$(date); python -m sglang.launch_server'", given, "/srv"},
	} {
		got := Parse(words(c.argv), given, "/srv")
		if diff := cmp.Diff(c.want, got.Env); diff != "" || got.Dir != c.dir || !got.SGLang() {
			t.Errorf("%s: in %s with\n%s", c.argv, got.Dir, diff)
		}
	}
	last := Parse(words("env CUDA_VISIBLE_DEVICES=1 sglang serve /m"), given, "")
	if v, _ := last.Getenv("CUDA_VISIBLE_DEVICES"); v != "1" {
		t.Errorf("the last assignment must count, got %q", v)
	}
}

func TestUnreadableWords(t *testing.T) {
	for _, line := range []string{
		`sh -c "python -m sglang.launch_server --port $(cat port) --tp 4 --dp 2"`,
		"sh -c 'python -m sglang.launch_server --port `cat port` --tp 4 --dp 2'",
		"sh -c 'P=$(cat port); python -m sglang.launch_server --port $P --tp 4 --dp 2'",
		"sh -c 'python -m sglang.launch_server --port x{1..1000000000} --tp 4 --dp 2'",
		"sh -c 'python -m sglang.launch_server --port $((1+1)) --tp 4 --dp 2 < <(x)'",
	} {
		c := Parse(words(line), nil, "")
		s := c.Server()
		if _, ok := c.Value("--port"); ok || s.Port != 30000 || s.TP != 4 || s.DP != 2 {
			t.Errorf("%s: got %+v", line, s)
		}
	}
}

func TestScripts(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "start.sh", "#!/usr/bin/env bash\nset -euo pipefail\nMODEL=/models/glm\nsource venv/bin/activate\n"+
		"exec python -m sglang.launch_server \\\n  --model-path \"$MODEL\" \\\n  --tp 8 \"$@\"\n", 0o755)
	write(t, dir, "other.py", "#!/usr/bin/python3\n", 0o755)
	for _, line := range []string{"./start.sh --port 4000", "bash start.sh --port 4000", "sh -e ./start.sh --port 4000"} {
		s := Parse(words(line), nil, dir).Server()
		if s.Model != "/models/glm" || s.TP != 8 || s.Port != 4000 {
			t.Errorf("%s: got %+v", line, s)
		}
	}
	for _, line := range []string{"./other.py", "./missing.sh", "bash missing.sh", "bash .", "bash /dev/zero"} {
		if c := Parse(words(line), nil, dir); c.SGLang() {
			t.Errorf("%s: got %+v", line, c)
		}
	}
}

func write(t *testing.T, dir, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestConfigFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "c.yaml", "model-path: /models/glm\ntp_size: 8\nport: 4000\nenable-dp-attention: true\ndp: 8\nskip-server-warmup: false\ncuda-graph-bs: [1, 2]\nlog-level: null\n", 0o644)
	write(t, dir, "bad.yaml", "a: [", 0o644)
	c := Parse(words("python -m sglang.launch_server --config c.yaml --port 5000"), nil, dir)
	s := c.Server()
	if s.Model != "/models/glm" || s.TP != 8 || s.Port != 5000 || !s.DPAttention || s.DP != 8 || s.SkipWarmup || s.GPUs() != 8 {
		t.Errorf("got %+v", s)
	}
	if diff := cmp.Diff([]string{"1", "2"}, c.Values("--cuda-graph-bs")); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"missing.yaml", "bad.yaml", "."} {
		c := Parse([]string{"sglang", "serve", "/m", "--config", name}, nil, dir)
		if !c.SGLang() || len(c.Notes) != 1 || c.Server().Model != "/m" {
			t.Errorf("%s: got %+v", name, c)
		}
	}
}

func TestServerFlags(t *testing.T) {
	c := Parse(words("python -m sglang.launch_server --model /m --tensor-parallel-size=16 --pp 2 --dp-size 4 --nnodes 4 --node-rank 1"+
		" --host 0.0.0.0 --port 1 --port 2 --nccl-port 3 --dist-init-addr n0:5000 --base-gpu-id 2 --gpu-id-step 2 --api-key k"+
		" --speculative-draft-model-path /d --device cuda --lora-paths a=/x b=/y --tp"), nil, "")
	want := Server{
		Model: "/m", Draft: "/d", TP: 16, PP: 2, DP: 4, Nodes: 4, NodeRank: 1, Host: "0.0.0.0", Port: 2, NCCLPort: 3,
		DistInit: "n0:5000", BaseGPU: 2, GPUStep: 2, APIKey: "k", Device: "cuda",
	}
	if diff := cmp.Diff(want, c.Server()); diff != "" {
		t.Error(diff)
	}
	if n := c.Server().GPUs(); n != 32 {
		t.Errorf("%d GPUs a node, want 32", n)
	}
	if diff := cmp.Diff([]string{"a=/x", "b=/y"}, c.Values("--lora-paths")); diff != "" {
		t.Error(diff)
	}
}

// Whatever the words, reading them ends, and an SGLang command keeps every
// flag that stands in it.
func TestAnyFlagIsFoundAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		port := rapid.IntRange(1, 65535).Draw(t, "port")
		before := rapid.SliceOf(rapid.SampledFrom([]string{"--x", "y", "--tp", "8", "-m", "env", "sh", ""})).Draw(t, "before")
		argv := append([]string{"python", "-m", "sglang.launch_server"}, before...)
		argv = append(argv, "--port", itoa(port))
		if got := Parse(argv, nil, "").Server().Port; got != port {
			t.Fatalf("%q: got port %d", argv, got)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("sh -c", "export A=1; python -m sglang.launch_server --tp $A")
	f.Add("env", "A=1\x00python\x00-m\x00sglang.launch_server")
	f.Add("bash -c", "for i in {1..9}; do sglang serve ~/$i; done")
	f.Add("sh -c", "x() { x; }; x; ${A?b} ${!A} $((1/0)) <(a) a[1]=2")
	f.Fuzz(func(t *testing.T, head, text string) {
		argv := append(strings.Fields(head), strings.Split(text, "\x00")...)
		c := Parse(argv, []string{"HOME=/root"}, t.TempDir())
		c.Server().GPUs()
	})
}
