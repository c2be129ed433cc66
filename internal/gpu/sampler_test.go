package gpu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// script is a driver that does what a test says.
type script struct {
	refusals []error       // of open, one after another; then it opens
	takes    time.Duration // of a sample
	xids     []error       // of xid, one after another; then nothing comes

	mu     sync.Mutex
	opened []time.Time
	rounds []time.Time
	asked  int // for Xids
	closed bool
}

func (d *script) open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened = append(d.opened, time.Now())
	if n := len(d.opened); n <= len(d.refusals) {
		return d.refusals[n-1]
	}
	return nil
}

func (d *script) sample(full bool, quit <-chan struct{}) Sample {
	d.mu.Lock()
	d.rounds = append(d.rounds, time.Now())
	d.mu.Unlock()
	time.Sleep(d.takes) // of the bubble's clock: the call itself
	s := Sample{At: time.Now(), GPUs: []GPU{{}}}
	if full {
		s.GPUs[0].Processes = []Process{}
	}
	return s
}

func (d *script) xid() (Xid, bool, error) {
	d.mu.Lock()
	d.asked++
	n := d.asked
	d.mu.Unlock()
	if n <= len(d.xids) {
		return Xid{Code: n}, d.xids[n-1] == nil, d.xids[n-1]
	}
	time.Sleep(time.Second)
	return Xid{}, false, nil
}

func (d *script) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

func (d *script) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// samplerOn serves a driver in the bubble.
type samplerOn struct {
	*testing.T
	in      *io.PipeWriter
	answers chan answer
	done    chan error
}

func serveScript(t *testing.T, d *script) *samplerOn {
	in, input := io.Pipe()
	output, out := io.Pipe()
	s := &sampler{
		driver: d, log: &callLog{}, out: &lineWriter{w: out},
		commands: make(chan command), quit: make(chan struct{}), interval: firstInterval,
	}
	on := &samplerOn{T: t, in: input, answers: make(chan answer, 1000), done: make(chan error, 1)}
	go func() {
		err := s.serve(context.Background(), in)
		in.Close() // the reader of commands may wait for the next one
		out.Close()
		on.done <- err
	}()
	go func() {
		defer close(on.answers)
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			var a answer
			if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
				t.Error(err)
			}
			on.answers <- a
		}
	}()
	return on
}

func (s *samplerOn) say(line string) {
	s.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.Fatal(err)
	}
}

func gaps(times []time.Time) []time.Duration {
	var gaps []time.Duration
	for i := 1; i < len(times); i++ {
		gaps = append(gaps, times[i].Sub(times[i-1]))
	}
	return gaps
}

// A driver that refuses is asked again with growing pauses, and at once when
// somebody wants to know.
func TestRefusingDriverIsAskedLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusal := &openError{code: 9, text: "the kernel driver is not loaded"}
		d := &script{refusals: slices.Repeat([]error{refusal}, 7)}
		s := serveScript(t, d)
		time.Sleep(6 * time.Minute)
		s.say(`{"snapshot": 4}`)
		synctest.Wait()
		s.say(`{"quit": true}`)
		if err := <-s.done; err != nil {
			t.Error(err)
		}
		want := []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 2 * time.Minute, 90 * time.Second}
		if got := gaps(d.opened); !slices.Equal(got, want) {
			t.Errorf("asked after %v, want %v", got, want)
		}
		var answered []int
		for a := range s.answers {
			if a.Sample == nil || a.Sample.Code != 9 {
				t.Errorf("got %+v", a)
			}
			answered = append(answered, a.Snapshot)
		}
		if !slices.Equal(answered, []int{0, 0, 0, 0, 0, 0, 4}) {
			t.Errorf("answered the snapshots %v", answered)
		}
	})
}

func TestAbsentDriverEndsTheSampler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveScript(t, &script{refusals: []error{&openError{absent: true, text: "no library"}}})
		if err := <-s.done; err != nil {
			t.Error(err)
		}
		if a := <-s.answers; a.Absent != "no library" {
			t.Errorf("got %+v", a)
		}
	})
}

// However often the pace is set, rounds come when they are due, counted from
// the beginning of the last one.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &script{takes: 300 * time.Millisecond}
		s := serveScript(t, d)
		for range 50 {
			s.say(`{"interval_ms": 1000}`)
			time.Sleep(100 * time.Millisecond)
		}
		s.say(`nonsense`)
		s.say(`{"interval_ms": 60000, "later": "fields"}`)
		time.Sleep(3 * time.Minute)
		s.in.Close()
		if err := <-s.done; err != nil {
			t.Error(err)
		}
		got := gaps(d.rounds)
		want := append(slices.Repeat([]time.Duration{time.Second}, 6), slices.Repeat([]time.Duration{time.Minute}, 3)...)
		if !slices.Equal(got, want) {
			t.Errorf("rounds came after %v, want %v", got, want)
		}
		if !d.isClosed() {
			t.Error("the driver was not closed")
		}
	})
}

// A call that hangs is told while it hangs; the sampler waits for it when it
// has to go, for a while.
func TestSamplerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &script{takes: time.Hour}
		s := serveScript(t, d)
		time.Sleep(10 * time.Second)
		began := time.Now()
		s.in.Close()
		if err := <-s.done; !errors.Is(err, errStuck) || time.Since(began) != quitPatience {
			t.Errorf("ended with %v after %v", err, time.Since(began))
		}
		if d.isClosed() {
			t.Error("the driver was closed under its call")
		}
		time.Sleep(time.Hour) // the call comes back, and its goroutine ends
	})
}

func TestCallLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &callLog{}
		if p := log.longer(0); p != nil {
			t.Errorf("before any call: %+v", p)
		}
		end := log.begin("nvmlDeviceGetName", 3)
		time.Sleep(time.Minute)
		if p := log.longer(time.Hour); p != nil {
			t.Errorf("a short call is told: %+v", p)
		}
		if p := log.longer(time.Second); p == nil || p.For != time.Minute || p.String() != "nvmlDeviceGetName of GPU 3" {
			t.Errorf("got %+v", p)
		}
		end()
		if p := log.longer(0); p != nil {
			t.Errorf("after the call: %+v", p)
		}
	})
}

// A watch for Xids that fails each time slows down, and goes on when it can.
func TestFailingXidWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("GPU is lost")
		d := &script{xids: []error{lost, lost, lost, nil}}
		s := serveScript(t, d)
		time.Sleep(5 * time.Second)
		d.mu.Lock()
		if d.asked > 3 {
			t.Errorf("asked %d times in 5 s", d.asked)
		}
		d.mu.Unlock()
		time.Sleep(5 * time.Second)
		s.in.Close()
		<-s.done
		var codes []string
		for a := range s.answers {
			if a.Xid != nil {
				codes = append(codes, itoa(a.Xid.Code))
			}
		}
		if got := strings.Join(codes, " "); got != "4" {
			t.Errorf("got the Xids %q", got)
		}
	})
}

// A client that does not read, or is gone, ends the sampler.
func TestOutputThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &script{}
		s := &sampler{
			driver: d, log: &callLog{}, out: &lineWriter{w: failing{}},
			commands: make(chan command), quit: make(chan struct{}), interval: firstInterval,
		}
		in, input := io.Pipe()
		if err := s.serve(context.Background(), in); err == nil {
			t.Error("it ended without an error")
		}
		input.Close()
		if !d.isClosed() {
			t.Error("the driver was not closed")
		}
	})
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
