package tune

import (
	"slices"
	"time"
)

// Next is the one thing to do now. It depends on the records and on the time
// alone, and stays the same until a record changes something.
func (n *Night) Next(now time.Time) Action {
	switch {
	case n.done != nil:
		return n.end()
	case len(n.plan.Trials) == 0:
		return Wait{Until: now.Add(time.Minute), Why: "there is no plan yet"}
	case n.serving != nil:
		return Note{n.finished()}
	}
	if l := n.openLaunch(); l != nil {
		return n.during(l, now)
	}
	if body, ok := n.notice(); ok {
		return Note{body}
	}
	if n.decided != nil {
		return n.morning(now)
	}
	switch {
	case n.broke != nil:
		return n.close(n.broke.Text)
	case !now.Before(n.trialsEnd()):
		return n.close("the morning has come")
	}
	next := n.schedule(now)
	switch {
	case next.done:
		return n.close("")
	case next.note != nil:
		return Note{next.note}
	}
	if a, shut := n.gate(now); shut {
		return a
	}
	return n.launch(next.slot, next.why, now)
}

func (n *Night) end() End {
	e := End{Done: *n.done}
	if n.serving != nil {
		e.Serving = n.serving.Launch
	}
	return e
}

// close ends the trials: of every trial that is left it is said why, then comes
// the verdict.
func (n *Night) close(why string) Action {
	if t, more := n.unmeasured(); more {
		return Note{n.noTime(t.ID, why)}
	}
	return Note{Decided{n.judge()}}
}

// launch asks for the launch of a slot.
func (n *Night) launch(slot Slot, why string, now time.Time) Launch {
	t := n.trials[slot.Trial]
	return Launch{
		Intended: Intended{Launch: len(n.launches) + 1, Slot: slot, Fingerprint: t.Fingerprint},
		Until:    n.startUntil(slot, now), Cold: n.cold(t), Why: why,
	}
}

// startUntil is when a start has to be over. A trial leaves the morning alone; a
// candidate in the morning leaves time for the baseline after it.
func (n *Night) startUntil(slot Slot, from time.Time) time.Time {
	until := from.Add(n.plan.Study.Limits.Start)
	switch {
	case slot.Stage != Morning:
		return earlier(until, n.trialsEnd().Add(-n.expect(slot.Trial).Release))
	case slot.Trial != BaselineID:
		return earlier(until, n.lastCall())
	}
	return until
}

// lastCall is when a candidate of the morning has to be up, or be stopped for
// the baseline.
func (n *Night) lastCall() time.Time {
	e := n.expect(BaselineID)
	return n.plan.Deadline.Add(-e.Start - 2*e.Release)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// cold tells whether the next launch of a trial gets empty caches of its own:
// the study wants it, or its last launch failed in a way that stale ones explain.
func (n *Night) cold(t Trial) bool {
	if n.plan.Study.Caches == CachesCold {
		return true
	}
	for _, l := range slices.Backward(n.of[t.ID]) {
		if l.ended != nil {
			c, failed := ClassOf(*l.ended)
			return failed && c.Cold
		}
	}
	return false
}

// during is what an open launch needs.
func (n *Night) during(l *launch, now time.Time) Action {
	stopping := l.Slot.Stage != Morning && (n.asked != nil || n.broke != nil)
	switch {
	case stopping:
		return Stop{Launch: l.Launch, Why: "the trials are over"}
	case l.ready == nil:
		t := n.trials[l.Slot.Trial]
		return Launch{Intended: l.Intended, Until: n.startUntil(l.Slot, l.at), Cold: n.cold(t)}
	}
	if why := n.disqualified(l); why != "" {
		return Stop{Launch: l.Launch, Why: why}
	}
	if l.measuring != nil {
		return n.measure(l, *l.measuring, l.since)
	}
	if a, more := n.ask(l); more {
		return a
	}
	if why := n.wrong(l); why != "" {
		return Stop{l.Launch, why, outputCorrupt}
	}
	return n.further(l, now)
}

// further is what a launch that is ready, and idle, needs.
func (n *Night) further(l *launch, now time.Time) Action {
	p, more := n.nextPoint(l)
	switch {
	case !more && l.Slot.Stage == Morning:
		return n.prove(l)
	case !more:
		return Stop{Launch: l.Launch, Why: "measured"}
	}
	if left, is := n.needless(l, p); is {
		return Note{left}
	}
	switch {
	case !n.timeFor(l, now):
		return Stop{Launch: l.Launch, Why: "no time is left for " + p.String()}
	case l.unflushed():
		return Stop{Launch: l.Launch, Why: "its prefix cache could not be emptied: a fresh server measures " + p.String()}
	case len(l.measured) > 0 && l.flushed == nil:
		return Flush{l.Launch}
	}
	return n.measure(l, p, now)
}

// measure asks for a point; a run that goes on keeps the limit that it began with.
func (n *Night) measure(l *launch, p Point, from time.Time) Measure {
	limit := n.plan.Study.LoadOf(p).Limit
	switch {
	case p.Soak:
		limit = n.plan.Study.Gate.Soak
	case limit == 0:
		limit = n.plan.Study.Limits.Load
	}
	return Measure{l.Launch, p, earlier(from.Add(limit), n.loadsEnd(l))}
}

// loadsEnd is when the last client has to be over.
func (n *Night) loadsEnd(l *launch) time.Time {
	if l.Slot.Stage == Morning {
		return n.lastCall()
	}
	return n.trialsEnd().Add(-n.expect(l.Slot.Trial).Release)
}

// timeFor tells whether one more point can be over in time.
func (n *Night) timeFor(l *launch, now time.Time) bool {
	return !now.Add(n.expect(l.Slot.Trial).Load).After(n.loadsEnd(l))
}

// retryGate is how long a gate that is shut, or a machine that failed, is left
// alone.
const retryGate = time.Minute

// gate asks for the gate before a trial; shut is false where it is open.
func (n *Night) gate(now time.Time) (a Action, shut bool) {
	open, last, why := n.lastGate()
	if open {
		return nil, false
	}
	if again := earlier(last.Add(retryGate), n.trialsEnd()); now.Before(again) {
		return Wait{again, why}, true
	}
	return Settle{len(n.launches), earlier(now.Add(n.plan.Study.Gate.Wait), n.trialsEnd())}, true
}

// lastGate tells whether the gate is open, else since when it is shut, and why;
// the zero time where nothing is to be waited for.
func (n *Night) lastGate() (open bool, since time.Time, why string) {
	if len(n.settles) > 0 {
		s := n.settles[len(n.settles)-1]
		return s.OK, s.at, s.Problem
	}
	if len(n.launches) == 0 {
		return false, time.Time{}, ""
	}
	l := n.launches[len(n.launches)-1]
	if l.ended == nil {
		return false, time.Time{}, ""
	}
	if c, failed := ClassOf(*l.ended); failed && c.Environment {
		return false, l.endedAt, describe(*l.ended)
	}
	return false, time.Time{}, ""
}
