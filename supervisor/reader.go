package supervisor

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/mask"
	"sglaunch/internal/serve"
	"sglaunch/internal/shim/wire"
	"sglaunch/phases"
	"sglaunch/supervisor/machine"
)

// reader turns what the shim sends into events: its messages one to one, the
// output through the tracker. It is one goroutine, so that the order of facts
// is the order in which the shim learnt them.
type reader struct {
	conn  *wire.Conn
	rules *phases.RuleSet
	post  func(attempt int, body machine.Body)
	// OnSpawned is told of the server of an attempt before it is posted.
	OnSpawned func(attempt int, p wire.Proc)
	// OnMember is told of every process of the attempt, OnTrouble of the
	// shim's own news. Both must return at once.
	OnMember  func(attempt int, p wire.Proc)
	OnTrouble func(text string)
	// OnPing is told that the shim asks for a sign of life.
	OnPing func()
	// OnOutput is given every stretch of output before the rules are, and the
	// offset of its end. What it does to the supervisor, a line of output could
	// do.
	OnOutput func(attempt int, end int64, part []byte)
	// OnHangup is told of a SIGHUP where no terminal can have vanished; nil = it
	// ends the launch like any other.
	OnHangup func()
	// OnSeen is told of every observation before it is posted; known ones a
	// supervisor before this one has posted already.
	OnSeen func(attempt int, o phases.Observation, known bool)

	mu      sync.Mutex // guards tracker, which evidence asks from elsewhere
	attempt int
	tracker *phases.Tracker
	next    int64 // offset up to which the tracker has the output
	skip    int   // observations that a supervisor before this one has posted
	seenTo  int64 // and the offset of the last line that one of them is about

	ended   int       // the newest attempt whose server has ended
	heardAt time.Time // Hearing was posted
	suspect *wire.Range
	deadly  []wire.Range

	bytes, lost atomic.Int64 // of output, in all
}

// Counts are the bytes of output so far. It may be called from any goroutine.
func (r *reader) Counts() serve.Output {
	return serve.Output{Bytes: r.bytes.Load(), Lost: r.lost.Load()}
}

// newReader returns a reader of the shim's messages. seen says how many
// observations of each attempt are in the journal already; they are not posted
// again.
func newReader(conn *wire.Conn, rules *phases.RuleSet, hello *wire.Hello, post func(int, machine.Body)) *reader {
	r := &reader{
		conn: conn, rules: rules, post: post,
		suspect: hello.Suspect, deadly: hello.Skip,
	}
	if hello.Exited != nil {
		r.ended = hello.Attempt
	}
	return r
}

// Follow asks the shim for the output of an attempt from its first byte on; of
// the observations the first skip are known already, and none that is about a line
// beyond seenTo, whatever other rules than before count.
func (r *reader) Follow(attempt, skip int, seenTo int64) error {
	r.mu.Lock()
	r.attempt, r.skip, r.seenTo, r.next, r.tracker = attempt, skip, seenTo, 0, phases.NewTracker(r.rules)
	r.mu.Unlock()
	return r.conn.Send(wire.Message{Type: wire.Stream, Attempt: attempt})
}

// UseRules has attempts that begin from now on read by other rules.
func (r *reader) UseRules(rules *phases.RuleSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rules = rules
}

// Run reads until the shim is gone. It returns nil when the connection was
// closed by the shim's end. It is called in a goroutine of its own, whose thread ends
// with it.
func (r *reader) Run() error {
	standBack()
	for {
		m, out, err := r.conn.Receive()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("cannot hear the shim: %w", err)
		case out != nil:
			r.output(*out)
		default:
			r.message(m)
		}
	}
}

// readNice is how far the reading stands back where the processors are taken: a
// server that floods us must not be held up by it. Beside one other who wants the
// same processor it gets a tenth of that, enough for some 50 MB of output a second.
// Whatever else a supervisor does stands back for nobody.
const readNice = 10

// standBack gives this goroutine a thread that does.
func standBack() {
	runtime.LockOSThread()
	if is, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil { // 20 less how nice it is
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 20-is+readNice)
	}
}

// output gives a stretch to the tracker. The shim is told before and after, so
// that it knows which bytes a supervisor died of.
func (r *reader) output(o wire.Output) {
	r.bytes.Add(int64(len(o.Data)))
	for len(o.Data) > 0 {
		n := r.stretch(o)
		part := o.Data[:n]
		if !r.isDeadly(o.Attempt, o.Offset) {
			to := o.Offset + int64(n)
			r.mark(wire.Message{Type: wire.Reading, Attempt: o.Attempt, From: o.Offset, To: to})
			if r.OnOutput != nil {
				r.OnOutput(o.Attempt, to, part)
			}
			r.feed(o.Attempt, o.Offset, part)
			r.mark(wire.Message{Type: wire.Read, Attempt: o.Attempt, To: to})
		}
		o.Data, o.Offset = o.Data[n:], o.Offset+int64(n)
	}
	if o.Attempt == r.ended && time.Since(r.heardAt) >= hearingPace {
		r.heardAt = time.Now()
		r.post(o.Attempt, machine.Hearing{Bytes: o.Offset})
	}
}

// hearingPace is how often it is told that a server which has ended is still read.
const hearingPace = time.Second

// feed gives a part of the output to the tracker. What the shim could not keep, or
// what nobody may read, is missing before it.
func (r *reader) feed(attempt int, offset int64, data []byte) {
	r.mu.Lock()
	if attempt != r.attempt || r.tracker == nil {
		r.mu.Unlock()
		return
	}
	var observed []phases.Observation
	if missing := offset - r.next; missing > 0 {
		observed = append(observed, r.tracker.Miss(missing)...)
	}
	observed = append(observed, r.tracker.Feed(data)...)
	r.next = offset + int64(len(data))
	r.mu.Unlock()
	r.tell(attempt, observed)
}

func (r *reader) tell(attempt int, observed []phases.Observation) {
	for _, o := range observed {
		o.Text = mask.String(o.Text)             // what is derived from the output is masked from here on
		if r.seenTo > 0 && o.Offset > r.seenTo { // 0: journals of an older program do not say
			r.skip = 0
		}
		known := r.skip > 0
		if known {
			r.skip--
		}
		if r.OnSeen != nil {
			r.OnSeen(attempt, o, known)
		}
		if known {
			continue
		}
		r.post(attempt, machine.Seen{Observation: o})
	}
}

func (r *reader) message(m *wire.Message) {
	switch m.Type {
	case wire.Spawned:
		if err := r.Follow(m.Attempt, 0, 0); err != nil {
			return
		}
		if r.OnSpawned != nil {
			r.OnSpawned(m.Attempt, *m.Proc)
		}
		r.post(m.Attempt, machine.Spawned{Proc: *m.Proc})
	case wire.SpawnFailed:
		r.post(m.Attempt, machine.SpawnFailed{Reason: m.Text})
	case wire.Member:
		if r.OnMember != nil {
			r.OnMember(m.Attempt, *m.Proc)
		}
	case wire.Exited:
		r.ended = m.Attempt
		r.post(m.Attempt, machine.Exited{Status: *m.Status})
	case wire.Drained:
		r.drained(m)
	case wire.TreeGone:
		r.post(m.Attempt, machine.TreeGone{})
	case wire.TreeLeft:
		r.post(m.Attempt, machine.TreeLeft{Procs: m.Procs})
	case wire.Asked:
		if m.Sig == int(unix.SIGHUP) && r.OnHangup != nil {
			r.OnHangup()
			return
		}
		r.post(0, stopBy(m.Sig))
	case wire.Ping:
		if r.OnPing != nil {
			r.OnPing()
		}
	case wire.Gap:
		r.lost.Add(m.To - m.From)
		r.trouble(fmt.Sprintf("%d bytes of output were lost at offset %d", m.To-m.From, m.From))
	case wire.Trouble:
		r.trouble(m.Text)
	}
}

func (r *reader) trouble(text string) {
	if r.OnTrouble != nil {
		r.OnTrouble(text)
	}
}

// drained ends the tracker's work on an attempt: the last, unterminated line
// counts, and the diagnosis is complete.
func (r *reader) drained(m *wire.Message) {
	r.mu.Lock()
	var observed []phases.Observation
	if m.Attempt == r.attempt && r.tracker != nil {
		observed = append(observed, r.tracker.Finish()...)
	}
	r.mu.Unlock()
	r.tell(m.Attempt, observed)
	r.post(m.Attempt, machine.Drained{Bytes: m.To, Cut: m.Cut, Diagnosis: r.Diagnosis()})
}

// Diagnosis is what the output of the current attempt says so far. It may be
// called from any goroutine.
func (r *reader) Diagnosis() machine.Diagnosis {
	r.mu.Lock()
	defer r.mu.Unlock()
	return diagnose(r.tracker)
}

// Report is the whole answer of `sglaunch explain` about the current attempt.
func (r *reader) Report() (phases.Report, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tracker == nil {
		return phases.Report{}, false
	}
	return r.tracker.Report(), true
}

// LastLines are the newest lines of each rank of the current attempt.
func (r *reader) LastLines() map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := map[string][]string{}
	if r.tracker == nil {
		return lines
	}
	for rank := range r.tracker.Ranks() {
		lines[rank] = r.tracker.LastLines(rank)
	}
	return lines
}
