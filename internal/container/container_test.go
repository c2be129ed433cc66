package container

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFind(t *testing.T) {
	for _, test := range []struct {
		argv string
		want string // client|cidfile or name|flags
	}{
		{"docker run img python3 -m sglang.launch_server --name x --rm", "docker||"},
		{"/usr/bin/podman --log-level debug run --rm img", "/usr/bin/podman --log-level debug||remove"},
		{"sudo docker run -d --name x img -t", "sudo docker|x|detached"},
		{"podman run --replace --name=x --rm=false img", "podman|x|replace"},
		{"docker run -it --gpus all --cidfile /c img -d", "docker|/c|tty"},
		{"docker run --cidfile=/c -v /m:/models --network host --shm-size 32g img --tty", "docker|/c|host"},
		{"docker run -v/m:/m -e A=1 --net=host --sig-proxy=false img", "docker||noproxy host"},
		{"docker run --detach=false -p 1:1 img", "docker||"},
		{"docker run --rm -eA -dp 1:1 img", "docker||remove detached"},
		{"nerdctl run img", "nerdctl||"},
		{"docker exec c run", ""},
		{"docker compose run x", ""},
		{"docker container run img", "docker container||"},
		{"python3 run docker", ""},
		{"bash -c docker run", ""},
		{"docker", ""},
		{"uv run python", ""},
	} {
		r, ok := Find(strings.Fields(test.argv))
		got := ""
		if ok {
			var flags []string
			for name, on := range map[string]bool{"detached": r.Detached, "tty": r.TTY, "noproxy": r.NoProxy, "host": r.Host, "remove": r.Remove, "replace": r.Replace} {
				if on {
					flags = append(flags, name)
				}
			}
			slices.SortFunc(flags, func(a, b string) int { return strings.Compare(b, a) })
			got = strings.Join(r.Client, " ") + "|" + r.IDFile + r.Name + "|" + strings.Join(flags, " ")
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.argv, got, test.want)
		}
	}
}

func TestBeyond(t *testing.T) {
	for line, want := range map[string]string{
		"docker exec -it c python3 -m sglang.launch_server": "docker exec",
		"sudo podman container start -a c":                  "podman start",
		"docker --context far compose up":                   "docker compose",
		"bash -c docker run --rm img":                       "docker run in bash -c",
		"/bin/sh -c cd /m && exec docker run img":           "docker run in sh -c",
		"docker run --rm img docker exec":                   "",
		"bash serve.sh --image img":                         "",
		"sh -c python3 -m sglang.launch_server":             "",
		"docker logs start":                                 "",
		"python3 -m sglang.launch_server":                   "",
	} {
		if what, ok := Beyond(strings.Fields(line)); what != want || ok != (want != "") {
			t.Errorf("%s: %q, %t", line, what, ok)
		}
	}
}

func TestWithIDFile(t *testing.T) {
	r, _ := Find([]string{"docker", "run", "--rm", "img"})
	if argv, file := r.WithIDFile("/x/cid"); strings.Join(argv, " ") != "docker run --cidfile=/x/cid --rm img" || file != "/x/cid" {
		t.Errorf("%q %q", argv, file)
	}
	r, _ = Find([]string{"docker", "run", "--cidfile", "mine", "img"})
	if argv, file := r.WithIDFile("/x/cid"); strings.Join(argv, " ") != "docker run --cidfile mine img" || file != "mine" {
		t.Errorf("%q %q", argv, file)
	}
}

// engine is a stand-in client: a container runs as long as a file is there.
const engine = `#!/bin/sh
echo "$*" >>"$ENGINE/asked"
case $1 in
ps) if [ -e "$ENGINE/runs" ]; then echo abcdef123456; fi ;;
kill) [ -e "$ENGINE/stubborn" ] && { echo "cannot kill" >&2; exit 1; }; rm -f "$ENGINE/runs" ;;
esac
`

func TestEnd(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ENGINE", dir)
	client := filepath.Join(dir, "docker")
	if err := os.WriteFile(client, []byte(engine), 0o755); err != nil {
		t.Fatal(err)
	}
	touch := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	end := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return End(ctx, dir)
	}
	if err := end(time.Minute); err != nil {
		t.Errorf("where there is no container: %v", err)
	}
	r, _ := Find([]string{client, "run", "--rm", "img"})
	_, file := r.WithIDFile(filepath.Join(dir, "cid"))
	if err := r.Note(dir, file, dir); err != nil {
		t.Fatal(err)
	}
	if err := end(time.Minute); err != nil {
		t.Errorf("where none was made: %v", err)
	}
	touch("cid", "abcdef123456\n")
	touch("runs", "")
	if err := end(time.Minute); err != nil {
		t.Errorf("one that runs: %v", err)
	}
	if asked, _ := os.ReadFile(filepath.Join(dir, "asked")); !strings.Contains(string(asked), "kill abcdef123456\n") || !strings.HasSuffix(string(asked), "rm --force abcdef123456\n") {
		t.Errorf("the client was asked %q", asked)
	}
	touch("runs", "")
	touch("stubborn", "")
	if err := end(2 * time.Second); err == nil || !strings.Contains(fmt.Sprint(err), "cannot kill") && !strings.Contains(err.Error(), "deadline") {
		t.Errorf("one that does not go: %v", err)
	}
}
