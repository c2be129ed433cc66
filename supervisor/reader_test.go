package supervisor

import (
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sglaunch/internal/shim/wire"
	"sglaunch/phases"
	"sglaunch/supervisor/machine"
)

// heard gives a reader what a shim would send, and says at which offsets it has
// seen something.
func heard(t *testing.T, hello wire.Hello, send func(shim *wire.Conn)) (offsets []int64) {
	t.Helper()
	ours, theirs := net.Pipe()
	shim := wire.NewConn(theirs)
	go func() {
		for { // Stream, and how far it has read
			if _, _, err := shim.Receive(); err != nil {
				return
			}
		}
	}()
	r := NewReader(wire.NewConn(ours), phases.BuiltinRules(), &hello, func(_ int, b machine.Body) {
		if s, ok := b.(machine.Seen); ok {
			offsets = append(offsets, s.Offset)
		}
	})
	done := make(chan error)
	go func() { done <- r.Run() }()
	_ = shim.Send(wire.Message{Type: wire.Spawned, Attempt: 1, Proc: &wire.Proc{PID: 1}})
	send(shim)
	shim.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	ours.Close()
	return offsets
}

// What is seen in the output has its place there, though output before it was
// lost or may not be read.
func TestPlacesInTheOutput(t *testing.T) {
	lines := []string{
		"[2026-02-19 05:48:40 TP0] Init torch distributed begin.\n",
		"[2026-02-19 05:48:50 TP0] Load weight begin. avail mem=138.20 GB\n",
		"[2026-02-19 05:55:02 TP0] Load weight end. type=M, avail mem=57.26 GB, mem usage=80.94 GB.\n",
	}
	text := strings.Join(lines, "")
	second, third, end := int64(len(lines[0])), int64(len(lines[0]+lines[1])), int64(len(text))
	out := func(from, to int64) wire.Output {
		return wire.Output{Attempt: 1, Offset: from, Data: []byte(text[from:to])}
	}
	cases := map[string]struct {
		hello wire.Hello
		send  func(*wire.Conn)
		want  []int64
	}{
		"whole": {send: func(c *wire.Conn) {
			_ = c.SendOutput(out(0, second+5))
			_ = c.SendOutput(out(second+5, end))
		}, want: []int64{0, second, third}},
		"a gap": {send: func(c *wire.Conn) {
			_ = c.SendOutput(out(0, second+5))
			_ = c.Send(wire.Message{Type: wire.Gap, Attempt: 1, From: second + 5, To: third})
			_ = c.SendOutput(out(third, end))
		}, want: []int64{0, third}},
		"a deadly line": {hello: wire.Hello{Skip: []wire.Range{{Attempt: 1, From: second, To: third}}}, send: func(c *wire.Conn) {
			_ = c.SendOutput(out(0, end))
		}, want: []int64{0, third}},
	}
	for name, c := range cases {
		if got := heard(t, c.hello, c.send); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// What reads the output stands back for the server where processors are few; what
// decides does not.
func TestReadingStandsBack(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	nice := func() int {
		is, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err != nil {
			t.Error(err)
		}
		return 20 - is
	}
	before := nice()
	ours, theirs := net.Pipe()
	var reading int
	r := NewReader(wire.NewConn(ours), nil, &wire.Hello{}, func(int, machine.Body) { reading = nice() })
	done := make(chan error)
	go func() { done <- r.Run() }()
	shim := wire.NewConn(theirs)
	if err := shim.Send(wire.Message{Type: wire.TreeGone}); err != nil {
		t.Fatal(err)
	}
	shim.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if want := min(before+readNice, 19); reading != want || nice() != before {
		t.Errorf("nice %d, reading %d, want %d", nice(), reading, want)
	}
}
