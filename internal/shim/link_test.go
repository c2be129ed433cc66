package shim

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"sglaunch/internal/shim/wire"
)

// frame is what a supervisor was sent, and how long after the beginning.
type frame struct {
	message string
	bytes   int
	after   time.Duration
}

// hear is the supervisor's end of a link: it collects frames until it is closed.
func hear(conn *wire.Conn, frames *[]frame) {
	begun := time.Now()
	for {
		m, out, err := conn.Receive()
		switch {
		case err != nil:
			return
		case m != nil:
			*frames = append(*frames, frame{message: m.Type, after: time.Since(begun)})
		default:
			*frames = append(*frames, frame{bytes: len(out.Data), after: time.Since(begun)})
		}
	}
}

// heardBy returns a link whose frames are noted, as long as it is open.
func heardBy(frames *[]frame) *link {
	ours, theirs := net.Pipe()
	go hear(wire.NewConn(theirs), frames)
	return newLink(ours)
}

// What is more than one frame holds is sent to its end, though nothing more comes.
func TestMoreThanAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var frames []frame
		l, s := heardBy(&frames), newSpool(1)
		s.add(make([]byte, 3*stretchSize+1), both)
		s.end(false)
		l.stream(s, 0)
		time.Sleep(time.Second)
		l.close()
		synctest.Wait()

		total := 0
		for _, f := range frames {
			total += f.bytes
		}
		if last := frames[len(frames)-1]; total != 3*stretchSize+1 || last.message != wire.Drained {
			t.Errorf("%d bytes were sent, and at last %+v", total, last)
		}
	})
}

// The first output after a pause is sent at once, what follows gathers, and
// messages wait for neither.
func TestOutputGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var frames []frame
		l, s := heardBy(&frames), newSpool(1)
		l.stream(s, 0)
		for i := range 100 {
			s.add([]byte("x"), both)
			if i == 50 {
				l.send(wire.Message{Type: wire.Exited})
			}
			time.Sleep(time.Millisecond)
		}
		s.end(false)
		time.Sleep(time.Second)
		l.close()
		synctest.Wait()

		total, told := 0, time.Duration(0)
		for _, f := range frames {
			total += f.bytes
			if f.message == wire.Exited {
				told = f.after
			}
		}
		if first := frames[0]; first.bytes != 1 || first.after != 0 {
			t.Errorf("first came %+v", first)
		}
		if total != 100 || len(frames) < 10 || len(frames) > 25 {
			t.Errorf("%d bytes in %d frames", total, len(frames))
		}
		if told != 50*time.Millisecond {
			t.Errorf("the message came after %v", told)
		}
		if last := frames[len(frames)-1]; last.message != wire.Drained || last.after > 100*time.Millisecond+2*gather {
			t.Errorf("last came %+v", last)
		}
	})
}

// Output that is there already waits for nothing.
func TestFullFramesDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var frames []frame
		l, s := heardBy(&frames), newSpool(1)
		for range 8 {
			s.add(make([]byte, stretchSize/2), both)
		}
		l.stream(s, 0)
		time.Sleep(gather)
		l.close()
		synctest.Wait()
		for i, f := range frames {
			if i < 4 && (f.bytes != stretchSize || f.after != 0) {
				t.Errorf("frame %d: %+v", i, f)
			}
		}
		if len(frames) != 4 {
			t.Errorf("%d frames", len(frames))
		}
	})
}

// Much output waits for nothing, and a reader that was woken for it is not woken
// once more for what it has been told of.
func TestMuchOutputIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, wake := newSpool(1), newBell()
		s.listen(wake)
		rung := func() bool {
			select {
			case <-wake:
				return true
			default:
				return false
			}
		}
		for i, step := range []struct {
			bytes int
			after time.Duration
			want  bool
		}{
			{0, 0, true},               // it listens
			{1, 0, true},               // after a pause
			{gatherSize - 1, 0, false}, // in company
			{1, 0, true},
			{0, 2 * gather, false},
			{1, 0, true},
			{1, gather / 2, false},
			{0, gather / 2, true},
		} {
			if step.bytes > 0 {
				s.add(make([]byte, step.bytes), both)
			}
			time.Sleep(step.after)
			synctest.Wait()
			if got := rung(); got != step.want {
				t.Errorf("step %d: rung: %v", i, got)
			}
		}
	})
}
