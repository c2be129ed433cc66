package serve

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/eventually"
)

// rig is a server whose launch does what it is asked.
type rig struct {
	*Server
	path string

	mu    sync.Mutex
	asked []Request
	deny  error
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{path: filepath.Join(t.TempDir(), "glm.sock")}
	s, err := Listen(Options{Path: r.path, Status: func() Status {
		return Status{V: Version, Time: time.Now(), Launch: "glm", Attempt: 1, Event: EventStatus, State: "up"}
	}, Ask: func(q Request) (map[string]any, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asked = append(r.asked, q)
		return nil, r.deny
	}})
	if err != nil {
		t.Fatal(err)
	}
	r.Server = s
	t.Cleanup(func() { _ = s.Close() })
	return r
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestAsk(t *testing.T) {
	r := newRig(t)
	st, err := Ask(soon(t), r.path, Request{Do: DoStatus})
	if err != nil || st == nil || st.State != "up" {
		t.Fatalf("got %+v, %v", st, err)
	}
	if _, err := Ask(soon(t), r.path, Request{Do: DoStop, Force: true, By: "me\n\x1b[31m"}); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	if want := []Request{{Do: DoStop, Force: true, By: "me [31m"}}; !slices.Equal(r.asked, want) {
		t.Errorf("asked %+v, want %+v", r.asked, want)
	}
	r.deny = errors.New("cannot restart: no")
	r.mu.Unlock()
	if _, err := Ask(soon(t), r.path, Request{Do: DoRestart}); err == nil || err.Error() != "cannot restart: no" {
		t.Errorf("a refusal is %v", err)
	}
	if _, err := Ask(soon(t), r.path, Request{Do: "reboot"}); err == nil || !strings.Contains(err.Error(), `cannot do "reboot"`) {
		t.Errorf("an unknown wish is %v", err)
	}
}

func TestSocketIsPrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	r := newRig(t)
	info, err := os.Stat(r.path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// Whatever comes down the socket, the next client is served.
func TestGarbage(t *testing.T) {
	r := newRig(t)
	for _, say := range []string{
		"", "\n", "{", "null\n", "[]\n", `{"do":1}` + "\n", `{"do":"status"`, "\x00\xff\n",
		strings.Repeat("x", requestMost) + "\n", strings.Repeat("{", requestMost*4), `{"do":"status"}`, `{"do":"status"}` + "\n\nmore",
	} {
		conn, err := net.Dial("unix", r.path)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = conn.Write([]byte(say))
		_ = conn.(*net.UnixConn).CloseWrite()
		got, _ := io.ReadAll(conn) // reset where more was said than is read
		if len(got) > 0 && !bytes.HasSuffix(got, []byte("}\n")) {
			t.Errorf("%.20q is answered %q", say, got)
		}
		_ = conn.Close()
	}
	if _, err := Ask(soon(t), r.path, Request{Do: DoStatus}); err != nil {
		t.Error(err)
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add([]byte(`{"do":"stop","force":true,"by":"x"}` + "\n"))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := readRequest(bytes.NewReader(data))
		if err == nil && (r.check() != nil || len([]rune(r.who())) > byMost) {
			t.Errorf("%q became %+v", data, r)
		}
	})
}

// Clients that connect and say nothing make room for one that asks.
func TestIdleClientsMakeRoom(t *testing.T) {
	r := newRig(t)
	for range 10 * clientsMost {
		conn, err := net.Dial("unix", r.path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if _, err := Ask(soon(t), r.path, Request{Do: DoStatus}); err != nil {
		t.Error(err)
	}
	if n := len(r.guests.all()); n > clientsMost {
		t.Errorf("%d clients have a place", n)
	}
}

// Clients that follow are bounded in number, and take no place from those who ask;
// when they go, others may.
func TestManyFollow(t *testing.T) {
	r := newRig(t)
	var following []net.Conn
	for range watchersMost {
		conn, err := net.Dial("unix", r.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := send(conn, Request{Do: DoWatch}); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err != nil { // the status comes
			t.Fatal(err)
		}
		following = append(following, conn)
	}
	watch := func() error {
		return Watch(soon(t), r.path, func([]byte, *Status, *Envelope) error { return io.EOF })
	}
	for range clientsMost { // as many as ever there are places
		if err := watch(); err == nil || !strings.Contains(err.Error(), "cannot follow") {
			t.Fatalf("one more who follows: %v", err)
		}
	}
	if _, err := Ask(soon(t), r.path, Request{Do: DoStop}); err != nil {
		t.Error(err)
	}
	for _, conn := range following {
		_ = conn.Close()
	}
	eventually.True(t, "one may follow again", func() bool { return errors.Is(watch(), io.EOF) })
}

// Who follows gets the status, then each event, then the end.
func TestWatch(t *testing.T) {
	r := newRig(t)
	var events []string
	err := Watch(soon(t), r.path, func(_ []byte, s *Status, e *Envelope) error {
		if s != nil {
			for i := range 3 {
				r.Publish(Envelope{V: 1, Event: fmt.Sprint("e", i)})
			}
			go r.Server.Close()
			return nil
		}
		events = append(events, e.Event)
		return nil
	})
	if want := []string{"e0", "e1", "e2"}; err != nil || !slices.Equal(events, want) {
		t.Errorf("got %v, %v", events, err)
	}
}

// A watcher that does not read costs nobody any time, and is told what it
// missed when it reads again.
func TestSlowWatcher(t *testing.T) {
	r := newRig(t)
	conn, err := net.Dial("unix", r.path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(`{"do":"watch"}` + "\n"))
	eventually.True(t, "it follows", func() bool {
		r.Server.mu.Lock()
		defer r.Server.mu.Unlock()
		return len(r.watchers) == 1
	})
	long, begun := strings.Repeat("x", 10_000), time.Now()
	const all = 2000
	for range all {
		r.Publish(Envelope{V: 1, Event: "fault", Text: long})
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("publishing took %s", took)
	}
	r.Publish(Envelope{V: 1, Event: "last"}) // lost as well, or not
	got, lost := 0, 0
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, lineMost)
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	for got+lost < all && lines.Scan() {
		s, e, err := decode(lines.Bytes())
		switch {
		case err != nil:
			t.Fatal(err)
		case s != nil:
		case e.Event == EventLost:
			lost += int(e.Fields["lost"].(float64))
		default:
			got++
		}
	}
	if got+lost < all || lost == 0 {
		t.Errorf("%d came, %d are told lost, of %d: %v", got, lost, all, lines.Err())
	}
}

// Whoever removes the socket, or its folder, makes no launch unreachable.
func TestSocketComesBack(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "s")
	s, err := Listen(Options{Path: path, Look: 5 * time.Millisecond, Status: func() Status { return Status{Event: EventStatus} }})
	if err != nil {
		t.Fatal(err)
	}
	for _, remove := range []func() error{func() error { return os.Remove(path) }, func() error { return os.RemoveAll(folder) }} {
		if err := remove(); err != nil {
			t.Fatal(err)
		}
		for ctx := soon(t); ; time.Sleep(5 * time.Millisecond) { // the pause of a poll
			_, err := Ask(ctx, path, Request{Do: DoStatus})
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("it does not come back: %v", err)
			}
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is left behind")
	}
}

func TestStaleSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(Options{Path: path}); err == nil || !strings.Contains(err.Error(), "another process answers") {
		t.Errorf("a socket in use: %v", err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	s, err := Listen(Options{Path: path})
	if err != nil {
		t.Fatalf("the socket of a dead launch: %v", err)
	}
	_ = s.Close()
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is left behind")
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(Options{Path: path}); err == nil || !strings.Contains(err.Error(), "it is no socket") {
		t.Errorf("a file: %v", err)
	}
	if _, err := Listen(Options{Path: "/nowhere/s"}); err == nil {
		t.Error("a folder that does not exist")
	}
	if _, err := Ask(soon(t), path, Request{Do: DoStatus}); !errors.Is(err, ErrNobody) {
		t.Errorf("asking a file: %v", err)
	}
	if _, err := Ask(soon(t), path+"x", Request{Do: DoStatus}); !errors.Is(err, ErrNobody) {
		t.Errorf("asking nobody: %v", err)
	}
}

// A launch that takes the connection and never answers is given up in time.
func TestSilence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Ask(ctx, path, Request{Do: DoStatus}); err == nil || !strings.Contains(err.Error(), "does not answer in time") {
		t.Errorf("got %v", err)
	}
}

// Another user is not served, whatever the socket's mode says. The kernel keeps
// users by thread, so that one thread can be a stranger.
func TestStranger(t *testing.T) {
	if os.Geteuid() != 0 {
		return // only root can be another user
	}
	r := newRig(t)
	dir := filepath.Dir(r.path)
	for _, path := range []string{r.path, dir, filepath.Dir(dir)} {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	heard := make(chan string)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		heard <- askAs(4242, r.path)
	}()
	if got := <-heard; got != "" {
		t.Errorf("a stranger was answered %q", got)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.asked) != 0 {
		t.Error("a stranger stopped the launch")
	}
}

func askAs(uid uintptr, path string) string {
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); e != 0 {
		return e.Error()
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err.Error()
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return err.Error()
	}
	_, _ = unix.Write(fd, []byte(`{"do":"stop"}`+"\n")) // refused where the server was quicker
	buf := make([]byte, 100)
	n, _ := unix.Read(fd, buf)
	return string(buf[:max(n, 0)])
}

func TestPlain(t *testing.T) {
	got := Plain("a\x1b[31mred\nREADY=1\u202e\xff" + strings.Repeat("é", 600))
	if strings.ContainsAny(got, "\x1b\n\u202e") || len([]rune(got)) > 500 || !strings.HasSuffix(got, "…") {
		t.Errorf("%q", got)
	}
}
