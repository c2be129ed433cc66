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

// heard gives a reader what a shim would send, and returns what it makes of it.
func heard(t *testing.T, hello wire.Hello, send func(shim *wire.Conn)) (all []machine.Body) {
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
	r := newReader(wire.NewConn(ours), phases.BuiltinRules(), &hello, func(_ int, b machine.Body) { all = append(all, b) })
	done := make(chan error)
	go func() { done <- r.Run() }()
	_ = shim.Send(wire.Message{Type: wire.Spawned, Attempt: 1, Proc: &wire.Proc{PID: 1}})
	send(shim)
	shim.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	ours.Close()
	return all
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
		var got []int64
		for _, b := range heard(t, c.hello, c.send) {
			if s, ok := b.(machine.Seen); ok {
				got = append(got, s.Offset)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Who decides hears that a server which has ended is still being read, not that
// one which lives is.
func TestReadingOfTheDead(t *testing.T) {
	out := wire.Output{Attempt: 1, Data: []byte("the last words\n")}
	exited := wire.Message{Type: wire.Exited, Attempt: 1, Status: &wire.Status{Signal: 9}}
	tell := func(hello wire.Hello, send func(*wire.Conn)) (bytes []int64) {
		for _, b := range heard(t, hello, send) {
			if h, ok := b.(machine.Hearing); ok {
				bytes = append(bytes, h.Bytes)
			}
		}
		return bytes
	}
	size := int64(len(out.Data))
	if got := tell(wire.Hello{}, func(c *wire.Conn) { _ = c.SendOutput(out); _ = c.Send(exited) }); got != nil {
		t.Errorf("of the living: %v", got)
	}
	if got := tell(wire.Hello{}, func(c *wire.Conn) { _ = c.Send(exited); _ = c.SendOutput(out) }); !slices.Equal(got, []int64{size}) {
		t.Errorf("of the dead: %v", got)
	}
	before := wire.Hello{Attempt: 1, Exited: exited.Status}
	if got := tell(before, func(c *wire.Conn) { _ = c.SendOutput(out) }); !slices.Equal(got, []int64{size}) {
		t.Errorf("of one that died before this supervisor began: %v", got)
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
	r := newReader(wire.NewConn(ours), nil, &wire.Hello{}, func(int, machine.Body) { reading = nice() })
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

// A supervisor that takes over reads the output again. What the one before has posted
// is known; where other rules find less in it, what comes later is news all the same.
func TestWhatIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		skip           int
		observed, want []int64
	}{
		"the same rules":       {2, []int64{10, 50, 60}, []int64{60}},
		"a fault told late":    {2, []int64{10, 50, 40}, []int64{40}},
		"rules that find less": {5, []int64{10, 50, 60, 70}, []int64{60, 70}},
	} {
		var posted []int64
		r := newReader(nil, nil, &wire.Hello{}, func(_ int, b machine.Body) { posted = append(posted, b.(machine.Seen).Offset) })
		r.skip, r.seenTo = c.skip, 50
		for _, offset := range c.observed {
			r.tell(1, []phases.Observation{{Offset: offset}})
		}
		if !slices.Equal(posted, c.want) {
			t.Errorf("%s: posted %v, want %v", name, posted, c.want)
		}
	}
}
