package patch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// world is a folder tree in which commands are looked up.
func world(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	put := func(path, text string, mode os.FileMode) {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"venv", "project/.venv", "other", "deep path"} {
		put(dir+"/bin/python", "\x7fELF", 0o755)
		put(dir+"/bin/python3", "\x7fELF", 0o755)
		put(dir+"/pyvenv.cfg", "home = /usr/bin\n", 0o644)
		put(dir+"/bin/sglang", "#!"+root+"/"+dir+"/bin/python\nimport sys\n", 0o755)
		put(dir+"/bin/activate", "", 0o644)
	}
	put("deep path/bin/sglang", "#!/bin/sh\n'''exec' \""+root+"/deep path/bin/python\" \"$0\" \"$@\"\n' '''\nimport sys\nif x: (\n", 0o755)
	put("project/pyproject.toml", "", 0o644)
	put("project/sub/keep", "", 0o644)
	put("conda/bin/conda", "\x7fELF", 0o755)
	put("conda/envs/llm/bin/python", "\x7fELF", 0o755)
	put("conda/envs/llm/conda-meta/history", "", 0o644)
	put("usr/bin/python3", "\x7fELF", 0o755)
	put("usr/bin/nsys", "\x7fELF", 0o755)
	put("start.sh", "#!/bin/bash\nset -e\nMODEL=/m\npython3 -m pip install x\nif [ -n \"$MODEL\" ]; then\n  source "+root+"/venv/bin/activate\nfi\nexport SGL=1\ncd "+root+"/project\nexec python -m sglang.launch_server --model-path \"$MODEL\" \"$@\"\n", 0o755)
	put("indirect.sh", "#!/usr/bin/env bash\nPY="+root+"/other/bin/python\n\"$PY\" -u -m sglang.launch_server &\nwait\n", 0o755)
	put("late.sh", "#!/bin/sh\nexec $(which python) -m sglang.launch_server\n", 0o755)
	put("loop.sh", "#!/bin/sh\nexec "+root+"/loop.sh\n", 0o755)
	put("server.py", "", 0o644)
	return root
}

func TestFindInterpreter(t *testing.T) {
	t.Parallel()
	root := world(t)
	server := "-m sglang.launch_server --tp 8"
	tests := []struct {
		command string // @ is the root
		python  string // relative to the root
		dir     string
		path0   string
		flags   string
		env     string
	}{
		{command: "python3 " + server, python: "usr/bin/python3"},
		{command: "@/venv/bin/python -u -X dev -W ignore " + server, python: "venv/bin/python", flags: "-u -X dev -W ignore"},
		{command: "venv/bin/python -um sglang.launch_server", python: "venv/bin/python", flags: "-u"},
		{command: "@/venv/bin/python -I " + server, python: "venv/bin/python", flags: "-I", path0: "-"},
		{command: "python3 @/server.py --tp 8", python: "usr/bin/python3", path0: "@"},
		{command: "@/venv/bin/sglang serve --tp 8", python: "venv/bin/python", path0: "@/venv/bin"},
		{command: "@/deep|path/bin/sglang serve", python: "deep path/bin/python", path0: "@/deep path/bin"},
		{command: "env -u X CUDA_VISIBLE_DEVICES=0 PYTHONPATH=/p python3 " + server, python: "usr/bin/python3", env: "PYTHONPATH=/p"},
		{command: "env PATH=@/other/bin python " + server, python: "other/bin/python"},
		{command: "env -C @/project .venv/bin/python " + server, python: "project/.venv/bin/python", dir: "project"},
		{command: "numactl -N 0 --membind=0 nice -n 5 python3 " + server, python: "usr/bin/python3"},
		{command: "taskset -c 0-31 timeout -k 5 4h python3 " + server, python: "usr/bin/python3"},
		{command: "nsys profile -o out python3 " + server, python: "usr/bin/python3"},
		{command: "uv run --directory @/project/sub python " + server, python: "project/.venv/bin/python", dir: "project/sub"},
		{command: "uv run --project project -- sglang serve", python: "project/.venv/bin/python", path0: "@/project/.venv/bin"},
		{command: "uv run --project project -m sglang.launch_server", python: "project/.venv/bin/python"},
		{command: "@/conda/bin/conda run --no-capture-output -n llm python " + server, python: "conda/envs/llm/bin/python"},
		{command: "@/conda/bin/conda run -p @/conda/envs/llm python " + server, python: "conda/envs/llm/bin/python"},
		{command: "sh -c |cd project && exec .venv/bin/python -m sglang.launch_server|", python: "project/.venv/bin/python", dir: "project"},
		{command: "bash -lc |. venv/bin/activate; HF_HOME=/hf python -m sglang.launch_server|", python: "venv/bin/python", env: "HF_HOME=/hf"},
		{command: "./start.sh --tp 8", python: "venv/bin/python", dir: "project", env: "SGL=1"},
		{command: "bash indirect.sh", python: "other/bin/python", flags: "-u"},
	}
	for _, test := range tests {
		t.Run(test.command, func(t *testing.T) {
			in, err := FindInterpreter(t.Context(), words(test.command, root), root, []string{"PATH=" + root + "/usr/bin:/usr/bin:/bin", "HOME=" + root})
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join(root, test.python); in.Python != want {
				t.Errorf("python is %s, want %s", in.Python, want)
			}
			if want := filepath.Join(root, test.dir); in.Dir != want {
				t.Errorf("dir is %s, want %s", in.Dir, want)
			}
			if want := strings.ReplaceAll(test.path0, "@", root); in.Path0 != want {
				t.Errorf("path0 is %q, want %q", in.Path0, want)
			}
			if got := strings.Join(in.Flags, " "); got != test.flags {
				t.Errorf("flags are %q, want %q", got, test.flags)
			}
			if test.env != "" && !slices.Contains(in.Env, test.env) {
				t.Errorf("environment lacks %s", test.env)
			}
		})
	}
}

// words splits a command at blanks; |...| keeps blanks together, and a lone |
// stands for one.
func words(command, root string) []string {
	command = strings.ReplaceAll(command, "@", root)
	parts := strings.Split(command, "|")
	if len(parts) == 2 {
		fields := strings.Fields(strings.Join(parts, "\x00"))
		for i := range fields {
			fields[i] = strings.ReplaceAll(fields[i], "\x00", " ")
		}
		return fields
	}
	fields := strings.Fields(parts[0])
	if len(parts) > 1 {
		fields = append(fields, parts[1])
	}
	return fields
}

func TestNoInterpreter(t *testing.T) {
	t.Parallel()
	root := world(t)
	for _, command := range []string{
		"/no/such/python -m x", "nothing", "nsys profile x", "sh late.sh", "./loop.sh", "uv run --with x python", "uv sync",
		"conda run -n nosuch python", "bash -c", "env", "numactl -N", "sh -c |if|", "sh -c |echo python -m sglang|", "./server.py",
	} {
		_, err := FindInterpreter(t.Context(), words(command, root), root, []string{"PATH=" + root + "/usr/bin:/usr/bin:/bin:" + root + "/conda/bin"})
		if err == nil {
			t.Errorf("%s: found one", command)
			continue
		}
		wantErr(t, err, ErrNoPython)
	}
}

func FuzzFindInterpreter(f *testing.F) {
	f.Add("env\x00-S\x00a b", "exec python -m x")
	f.Fuzz(func(t *testing.T, command, script string) {
		argv := strings.Split(command, "\x00")
		for _, a := range [][]string{argv, {"sh", "-c", script}} {
			if filepath.IsAbs(a[0]) || isShim(a[0]) {
				continue // whatever this machine has there
			}
			_, _ = FindInterpreter(t.Context(), a, t.TempDir(), []string{"PATH=/nonexistent"})
		}
	})
}
