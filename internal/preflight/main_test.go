package preflight

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scene is a launch to look at: its input, and a root for what is read of the
// machine.
type scene struct {
	*testing.T
	Input
	root string
}

// server is a scene with the flags of an SGLang server.
func server(t *testing.T, flags ...string) *scene {
	dir := t.TempDir()
	s := &scene{T: t, root: t.TempDir()}
	s.Argv = append([]string{"python3", "-m", "sglang.launch_server"}, flags...)
	s.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	s.Dir, s.StateDir = dir, dir
	return s
}

// file writes a file below the root of the machine.
func (s *scene) file(path, text string) { write(s.T, filepath.Join(s.root, path), text) }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// check does the checks of one name.
func (s *scene) check(name string) []Check {
	s.Helper()
	l := newLook(s.Input, s.root)
	i := slices.IndexFunc(checkers, func(c checker) bool { return c.name == name })
	if i < 0 {
		s.Fatalf("there is no check %q", name)
	}
	return checkers[i].within(context.Background(), l)
}

// want is what a check should say: status, cause, and a part of its text.
type want struct {
	status Status
	cause  string
	text   string
}

// expect compares checks with what is wanted, in order. Every check that is
// not fine has to say what to do, or what it found to be told apart.
func expect(t *testing.T, got []Check, wants ...want) {
	t.Helper()
	ok := len(got) == len(wants)
	for i := 0; ok && i < len(got); i++ {
		g, w := got[i], wants[i]
		ok = g.Status == w.status && g.Cause == w.cause && strings.Contains(g.Found, w.text) && (g.Status != Fail || g.Advice != "")
	}
	if !ok {
		t.Errorf("got\n%swant %+v", show(got), wants)
	}
}

func show(checks []Check) string {
	var text strings.Builder
	for _, c := range checks {
		fmt.Fprintf(&text, "  %s %s [%s] %s -> %s\n", c.Status, c.Name, c.Cause, c.Found, c.Advice)
	}
	return text.String()
}

// listen takes a free port, and holds it.
func listen(t *testing.T, address string) (number int) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// free finds a port that nobody holds now.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
