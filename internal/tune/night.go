package tune

import (
	"errors"
	"fmt"
	"maps"
	"time"
)

// Night is a fold over records: what is known so far. Build it with Fold, add
// each new record with Add, and ask Next what to do. The zero Night knows
// nothing and waits for Planned. It is not for concurrent use.
type Night struct {
	plan     Planned
	began    time.Time // of the first record
	latest   time.Time // of the newest
	worked   time.Time // of the newest measurement
	seq      int       // of the newest record
	trials   map[string]Trial
	launches []*launch            // in order; launch n is launches[n-1]
	of       map[string][]*launch // the same by trial
	pace     pace
	settles  []settle // after the newest launch
	skips    map[string]Skipped
	drifts   []Drifted
	broke    *Broke
	asked    *StopAsked
	decided  *Verdict
	serving  *Serving
	done     *Done
}

// launch is what is known of one launch.
type launch struct {
	Intended
	at          time.Time
	launched    *Launched
	ready       *Ready
	answered    *Answered // before it is measured
	flushed     *Flushed  // since the newest measurement
	measuring   *Point    // a client runs
	since       time.Time // when it began
	measured    []Measured
	carried     []Measured // by the launch that this one continues
	left        *LeftOut
	ended       *Ended
	endedAt     time.Time
	interrupted bool
	rested      bool     // nothing had been measured for some time before it
	void        bool     // it lies in a stretch in which the baseline drifted
	judged      *outcome // once it is over; a new plan and a drift judge anew
}

func (l *launch) open() bool { return l.ended == nil && !l.interrupted }

// unflushed tells that the prefix cache could not be emptied after the newest
// measurement, or was not empty at its begin though it had been emptied.
func (l *launch) unflushed() bool {
	if l.flushed != nil {
		return !l.flushed.OK
	}
	return len(l.measured) > 0 && l.measured[len(l.measured)-1].Window.stale()
}

// runs are all measurements that speak for a launch, in order.
func (l *launch) runs() []Measured {
	return append(l.carried[:len(l.carried):len(l.carried)], l.measured...)
}

// settle is one pass of the gate.
type settle struct {
	Settled
	at time.Time
}

// Fold reads a journal's records from the first.
func Fold(records []Record) (*Night, error) {
	n := &Night{}
	for _, r := range records {
		if err := n.Add(r); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// Seq is the number that the next record has to have.
func (n *Night) Seq() int { return n.seq + 1 }

// Began is the time of the first record; zero where there is none.
func (n *Night) Began() time.Time { return n.began }

// Plan is the newest plan.
func (n *Night) Plan() Planned { return n.plan }

// Deadline is when a server has to serve.
func (n *Night) Deadline() time.Time { return n.plan.Deadline }

// Done tells whether the night is over.
func (n *Night) Done() bool { return n.done != nil }

// Add folds one record. A record that cannot be (a number out of order, a
// launch that is not open, a newer version) is refused and changes nothing.
func (n *Night) Add(r Record) error {
	err := n.admits(r)
	if err != nil {
		return fmt.Errorf("cannot use record %d of the night: %w", r.Seq, err)
	}
	if n.began.IsZero() {
		n.began = r.At
	}
	n.seq, n.latest = r.Seq, r.At
	n.fold(r)
	return nil
}

// admits reports why a record cannot follow.
func (n *Night) admits(r Record) error {
	if r.Seq != n.seq+1 {
		return fmt.Errorf("record %d has to follow", n.seq+1)
	}
	_, planned := r.Body.(Planned)
	switch {
	case n.done != nil:
		return errors.New("the night is over")
	case !planned && n.seq == 0:
		return errors.New("a night begins with its plan")
	}
	switch b := r.Body.(type) {
	case Planned:
		return b.check()
	case Intended:
		return n.admitsLaunch(b)
	case Skipped:
		if b.Evidence < 0 || b.Evidence > len(n.launches) {
			return fmt.Errorf("there is no launch %d", b.Evidence)
		}
	}
	number, of := launchOf(r.Body)
	if !of {
		return nil
	}
	if number < 1 || number > len(n.launches) || !n.launches[number-1].open() {
		return fmt.Errorf("launch %d is not open", number)
	}
	return nil
}

func (n *Night) admitsLaunch(in Intended) error {
	if want := len(n.launches) + 1; in.Launch != want {
		return fmt.Errorf("launch %d has to follow, not %d", want, in.Launch)
	}
	if l := n.openLaunch(); l != nil {
		return fmt.Errorf("launch %d has not ended", l.Launch)
	}
	return nil
}

// check reports why a plan cannot be followed.
func (p Planned) check() error {
	switch {
	case p.Version > RecordVersion:
		return fmt.Errorf("it was written by a newer sglaunch (version %d, this one knows up to %d)", p.Version, RecordVersion)
	case len(p.Trials) == 0 || !p.Trials[0].Baseline() || len(p.Trials) > maxTrials+1:
		return fmt.Errorf("its trials are not the baseline and up to %d others", maxTrials)
	case p.Expect.Start < 0 || p.Expect.Load < 0 || p.Expect.Release < 0:
		return errors.New("it expects what takes less than no time")
	}
	return p.Study.Validate()
}

// launchOf is the launch that a record speaks of, which has to be open.
func launchOf(b Body) (number int, ok bool) {
	switch b := b.(type) {
	case Launched:
		return b.Launch, true
	case Ready:
		return b.Launch, true
	case Answered:
		return b.Launch, true
	case Flushed:
		return b.Launch, true
	case Measuring:
		return b.Launch, true
	case Measured:
		return b.Launch, true
	case LeftOut:
		return b.Launch, true
	case Ended:
		return b.Launch, true
	case Serving:
		return b.Launch, true
	}
	return 0, false
}

// fold changes the state by one record.
func (n *Night) fold(r Record) {
	switch b := r.Body.(type) {
	case Planned:
		n.planned(b)
	case Resumed:
		if !b.Serving || n.serving == nil {
			n.resumed()
		}
	case Intended:
		n.intended(&launch{Intended: b, at: r.At})
	case Launched:
		n.launches[b.Launch-1].launched = &b
	case Ready:
		l := n.launches[b.Launch-1]
		l.ready = &b
		n.pace.started(l.Slot.Trial, b.Took, n.plan.Study.Caches != CachesCold && n.cold(n.trials[l.Slot.Trial]))
	case Answered:
		n.launches[b.Launch-1].answered = &b
		n.pace.asked = max(n.pace.asked, b.Took)
	case Flushed:
		n.launches[b.Launch-1].flushed = &b
	case Measuring:
		l := n.launches[b.Launch-1]
		l.measuring, l.since = &b.Point, r.At
	case Measured:
		l := n.launches[b.Launch-1]
		l.measuring, l.flushed = nil, nil
		l.measured = append(l.measured, b)
		if n.worked = r.At; !b.Point.Soak {
			n.pace.load = max(n.pace.load, b.Took)
		}
	case LeftOut:
		n.launches[b.Launch-1].left = &b
	case Ended:
		l := n.launches[b.Launch-1]
		l.ended, l.endedAt, l.measuring = &b, r.At, nil
	case Settled:
		n.settles = append(n.settles, settle{b, r.At})
	case Skipped:
		n.skips[b.Trial] = b
	case Drifted:
		n.drifts = append(n.drifts, b)
		n.voidBetween(b.From, b.To)
	case Broke:
		n.broke = &b
	case Decided:
		n.decided = &b.Verdict
	case Serving:
		n.serving = &b
	case StopAsked:
		n.asked = &b
	case Done:
		n.done = &b
	default:
		panic(fmt.Sprintf("tune: unknown record %T", b))
	}
}

// planned takes a new plan. What was skipped for want of time, or for a reason
// that the old plan gave, is open again; deadline and seed stay those of the first.
func (n *Night) planned(p Planned) {
	if !n.plan.Deadline.IsZero() {
		p.Deadline, p.Seed = n.plan.Deadline, n.plan.Seed
	}
	n.plan = p
	for _, l := range n.launches {
		l.judged = nil
	}
	n.trials = map[string]Trial{}
	for _, t := range p.Trials {
		n.trials[t.ID] = t
	}
	if n.skips == nil {
		n.skips, n.of = map[string]Skipped{}, map[string][]*launch{}
	}
	maps.DeleteFunc(n.skips, func(_ string, s Skipped) bool { return s.Evidence == 0 })
}

// restful is how long the GPUs have nothing to do before the first figures that
// they give then are those of a cool machine: their clocks are higher.
const restful = 30 * time.Minute

// intended begins a launch. Where the one before it in the same slot could not
// empty its prefix cache, it goes on with the points that are left: a fresh
// server has nothing to empty.
func (n *Night) intended(l *launch) {
	if of := n.of[l.Slot.Trial]; len(of) > 0 {
		last := of[len(of)-1]
		if last.Slot == l.Slot && last.Fingerprint == l.Fingerprint && n.outcome(last).status == continued {
			l.carried = last.runs()
		}
	}
	l.rested = n.worked.IsZero() || l.at.Sub(n.worked) >= restful
	n.launches = append(n.launches, l)
	n.of[l.Slot.Trial] = append(n.of[l.Slot.Trial], l)
	n.settles = nil
}

// resumed closes what was open when the tuner died.
func (n *Night) resumed() {
	if l := n.openLaunch(); l != nil {
		l.interrupted, l.measuring = true, nil
	}
	n.settles = nil
	n.serving = nil
}

// openLaunch is the launch that runs now; nil where none does.
func (n *Night) openLaunch() *launch {
	if len(n.launches) == 0 {
		return nil
	}
	if l := n.launches[len(n.launches)-1]; l.open() {
		return l
	}
	return nil
}

// current tells whether a launch counts: its trial is still in the plan, and all
// that its measurement depends on is as it was.
func (n *Night) current(l *launch) bool {
	t, ok := n.trials[l.Slot.Trial]
	return ok && t.Fingerprint == l.Fingerprint
}

// skipped is why a trial is not tried, or not tried further. What taught it has
// to count still.
func (n *Night) skipped(trial string) (s Skipped, ok bool) {
	s, ok = n.skips[trial]
	if ok && s.Evidence > 0 && !n.current(n.launches[s.Evidence-1]) {
		return Skipped{}, false
	}
	return s, ok
}

// voidBetween marks what was measured in a stretch in which the baseline moved.
// It is measured again, but only once: a machine that drifts all night would
// else be measured all night.
func (n *Night) voidBetween(from, to int) {
	again := map[string]bool{}
	for _, l := range n.launches {
		if l.void {
			again[l.Slot.Trial] = true
		}
	}
	for _, l := range n.launches {
		if l.Launch > from && l.Launch < to && l.Slot.Trial != BaselineID && !again[l.Slot.Trial] {
			l.void, l.judged = true, nil
		}
	}
}
