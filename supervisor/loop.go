package supervisor

import (
	"fmt"
	"math/rand/v2"
	"time"

	"sglaunch/supervisor/journal"
	"sglaunch/supervisor/machine"
)

// performer does what the machine wants done. Perform never waits: what takes
// time goes on elsewhere, and its result comes back through the loop's Post.
type performer interface {
	Perform(machine.Effect)
}

// loop is the one goroutine that owns the machine. It merges the news of all
// senders into one order, arms one timer from the machine's one deadline, and
// hands out the effects.
type loop struct {
	machine *machine.Machine
	journal *journal.Journal
	perform performer
	// OnView is told of the machine's state after each step, before the
	// effects are performed. It must return at once; nil = nobody looks.
	OnView func(machine.View)

	seq   uint64
	seen  journal.Seen // for whoever goes on from here
	since int          // entries in this file of the journal
	// rotateAfter is the constant of that name; tests rotate sooner.
	rotateAfter int
	begun       time.Time // wall clock at the start, for times that no clock change moves
	news        chan news
	pings       chan func() // answers that wait for their turn
	done        chan struct{}
	leave       chan struct{} // closed: another goes on
}

type news struct {
	attempt int
	body    machine.Body
	at      time.Time
}

// newsDepth lets senders run ahead of a busy loop; a full channel makes them
// wait, which delays news but loses none.
const newsDepth = 256

// newLoop returns a loop over m. A nil journal keeps no record.
func newLoop(m *machine.Machine, j *journal.Journal, p performer) *loop {
	return &loop{
		machine: m, journal: j, perform: p, begun: time.Now(),
		rotateAfter: rotateAfter, news: make(chan news, newsDepth), pings: make(chan func(), 1),
		done: make(chan struct{}), leave: make(chan struct{}),
	}
}

// rotateAfter bounds one file of the journal: some 15 MB, a week of service.
// What a new supervisor folds stays a matter of a fraction of a second.
const rotateAfter = 50_000

// goOn continues the count of a supervisor before this one. Call it before Run.
func (l *loop) goOn(seq uint64, seen journal.Seen) {
	l.seq = seq
	l.seen = seen.Clone()
}

// Post gives the loop one fact about an attempt (0: about the launch itself).
// It may be called from any goroutine and does nothing once the loop has ended.
func (l *loop) Post(attempt int, body machine.Body) {
	select {
	case l.news <- news{attempt, body, l.now()}:
	case <-l.done:
	}
}

// Ping has the loop itself answer between two steps: a loop that hangs does not.
// Where it has ended, what follows has limits of its own, and the answer is given
// at once. It may be called from any goroutine and never waits for the loop.
func (l *loop) Ping(answer func()) {
	select {
	case <-l.done:
		answer()
		return
	default:
	}
	select {
	case l.pings <- answer:
	default: // one waits already, and speaks for both
	}
}

// Leave ends the loop though the launch goes on; Run then returns no exit code
// of any meaning. Call it once.
func (l *loop) Leave() { close(l.leave) }

// Done is closed when the loop has ended.
func (l *loop) Done() <-chan struct{} { return l.done }

// now is the time of the wall clock at the loop's start plus what a clock that
// only runs forward has counted since: a corrected clock ends no patience.
func (l *loop) now() time.Time {
	return l.begun.Round(0).Add(time.Since(l.begun))
}

// Run takes what is first, in this order, and then everything that is posted until the
// machine has ended, and returns the exit code.
func (l *loop) Run(first ...machine.Body) int {
	defer close(l.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for _, body := range first {
		l.step(news{0, body, l.now()})
	}
	for {
		if code, ok := l.machine.Ended(); ok {
			return code
		}
		deadline, armed := l.machine.Deadline()
		if armed {
			timer.Reset(deadline.Sub(l.now()))
		} else {
			timer.Stop()
		}
		select {
		case n := <-l.news:
			l.step(n)
		case <-timer.C:
			l.tick(deadline)
		case answer := <-l.pings:
			answer()
		case <-l.leave:
			return 0
		}
	}
}

func (l *loop) tick(deadline time.Time) {
	at := l.now()
	if at.Before(deadline) {
		return // a timer that was already on its way when it was armed anew
	}
	l.step(news{0, machine.Tick{}, at})
	if next, armed := l.machine.Deadline(); armed && !next.After(at) {
		panic(fmt.Sprintf("internal error: after a tick at %s the deadline is still %s", at, next))
	}
}

func (l *loop) step(n news) {
	l.seq++
	e := machine.Event{Seq: l.seq, At: n.at, Attempt: n.attempt, Roll: rand.Float64(), Body: n.body}
	effects := l.machine.Step(e)
	l.record(e, effects)
	if l.OnView != nil {
		l.OnView(l.machine.View())
	}
	for _, effect := range effects {
		l.perform.Perform(effect)
	}
}

// record journals a step and, from time to time, lets the journal begin anew
// from what the machine knows.
func (l *loop) record(e machine.Event, effects []machine.Effect) {
	l.seen.Add(e)
	if l.journal == nil {
		return
	}
	l.journal.Add(journal.Entry{Event: e, Effects: effects})
	if l.since++; l.since < l.rotateAfter {
		return
	}
	snapshot, err := l.machine.Snapshot()
	if err == nil && l.journal.Rotate(journal.Header{Time: e.At, Options: l.machine.Options(), Snapshot: snapshot, Seen: l.seen.Clone()}) {
		l.since = 0
	}
}
