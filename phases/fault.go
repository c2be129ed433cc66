package phases

import "bytes"

// genericCause is the cause of an exception that no rule knows.
const genericCause = "scheduler_exception"

// traceback follows frames, chains and final lines of a Python traceback that
// carries no prefix. It tells whether the line needs no other reading.
func (t *Tracker) traceback(msg []byte, open *failure, inFrames bool) (done bool) {
	switch {
	case t.line.h.marks&markLiteral != 0 && bytes.Contains(msg, tracebackHead):
		t.tracebackHead(open)
		return bytes.HasPrefix(msg, tracebackHead)
	case isFrame(msg):
		if open == nil {
			open = t.openFailure()
		}
		if open != nil {
			open.frames, open.message = true, false
			open.dumped = open.dumped || t.line.dumped
			open.ours = open.ours || bytes.Contains(msg, []byte("sglang/"))
			open.keepFile(msg)
			t.frame(open)
		}
		return true
	case inFrames:
		return true // a source line or a caret line under a frame
	case isChain(msg):
		if open != nil {
			open.message = false
		}
		return true
	}
	class := exceptionType(msg, open != nil && open.frames && !open.message)
	if class == nil {
		return false
	}
	t.exception(msg, class, open)
	return true
}

// tracebackHead opens a failure, or goes on with the one whose chain it is.
func (t *Tracker) tracebackHead(open *failure) {
	if open == nil {
		open = t.openFailure()
	}
	if open != nil {
		open.frames, open.message = true, false
	}
}

// exception takes the final line of a traceback, or one that stands alone.
func (t *Tracker) exception(msg, class []byte, open *failure) {
	l := &t.line
	if open == nil {
		if open = t.openFailure(); open == nil {
			return
		}
	}
	open.message = true
	if bytes.HasSuffix(class, []byte("CancelledError")) {
		return // somebody gave up the wait; why stands elsewhere
	}
	if bytes.HasSuffix(class, []byte("KeyboardInterrupt")) || bytes.Equal(class, []byte("SystemExit")) {
		open.harness = true
		l.node.drained = l.node.drained || class[0] == 'K'
		return
	}
	known := false
	for _, m := range t.found {
		if m.rule.Kind == RuleFault && t.repeated(m.rule, msg, m.groups) {
			l.node.seenRules.add(m.number)
			t.record(m.rule, msg, m.groups, open)
			known = known || m.rule.Severity != SeverityClue
		}
	}
	if !known {
		t.record(nil, msg, nil, open)
	}
}

// faultLine records a fault that stands in a line of its own or in the text
// after an exception. All faults of one line share a failure.
func (t *Tracker) faultLine(r *Rule, msg []byte, groups []int, target *failure) *failure {
	if !t.repeated(r, msg, groups) {
		return target
	}
	l := &t.line
	if target == nil {
		target = l.node.open[l.key]
	}
	if target == nil && r.Severity != SeverityClue {
		if target = t.openFailure(); target == nil {
			return nil
		}
		if !l.h.stamped || !bytes.Contains(msg, tracebackHead) {
			delete(l.node.open, l.key)
			target.logged = l.h.stamped
		}
	}
	t.record(r, msg, groups, target)
	return target
}

// quoting tells whether a server in service says a fault behind words of its own: a
// model's output that could not be parsed, a request that was refused. What it says of
// itself begins the message.
func (t *Tracker) quoting(r *Rule, msg []byte, groups []int) bool {
	if !t.line.h.stamped || t.Phase() < Ready {
		return false
	}
	at := bytes.Index(msg, []byte(r.Lit))
	if len(groups) > 0 {
		at = groups[0]
	}
	return at > 0
}

// openFailure begins a failure at this line; what follows without a prefix
// belongs to it. It is muted after an orderly shutdown has begun.
func (t *Tracker) openFailure() *failure {
	l := &t.line
	if l.node.drained {
		f := &failure{rank: l.rank, harness: true, frames: true}
		l.node.open[l.key] = f
		return f
	}
	f := l.node.fail(l.rank)
	if f != nil {
		f.source = string(l.h.source)
		f.begin = t.unknown(l.h.msg, f)
		f.handled = l.node.handled > 0 && l.line-l.node.handled <= 2
		l.node.open[l.key] = f
	}
	return f
}

// frame learns from a frame. Of those that tell the phase the deepest counts, but
// what serves stays in service whatever it calls, and a dump begins with the deepest:
// there it is the one that comes latest in a start. Of those that tell what an
// exception raised there means, it is the deepest of all.
func (t *Tracker) frame(open *failure) {
	open.places = open.places[:0]
	for _, m := range t.found {
		switch {
		case m.rule.Kind != RuleFrame:
			continue
		case m.rule.Phase != nil && !open.knows(*m.rule.Phase, t.line.dumped):
			open.hint = m.rule.Phase
		}
		if m.rule.Cause != "" {
			open.places = append(open.places, m.rule)
		}
	}
}

// record makes a fault of the line, offers it to its failure and says so.
func (t *Tracker) record(r *Rule, msg []byte, groups []int, f *failure) {
	l := &t.line
	if f != nil && f.harness {
		return
	}
	x := t.unknown(msg, f)
	if r == nil {
		x.place = f.place(exceptionType(msg, true))
	} else {
		x.rule, x.severity = r, r.Severity
		if text := r.group(msg, groups, "text"); text != nil {
			x.text = clip(uncoloured(text), maxFaultText)
		}
	}
	if x.severity == SeverityClue {
		x.cause = r.causeIn(l.node.phaseOf(x, f), l.node.begun)
		t.clue(x)
		return
	}
	if r != nil {
		if r.Severity == SeverityWrapper && r.Phase != nil && f.hint == nil {
			f.hint = r.Phase
		}
		f.certain = f.certain || r.Certain && !t.quoting(r, msg, groups)
	}
	f.offer(x)
	l.node.settle(f)
	l.node.settleFault(x, f)
	t.faultNews(x, f)
}

// unknown makes a fault of the line that no rule knows.
func (t *Tracker) unknown(text []byte, f *failure) *fault {
	l := &t.line
	x := &fault{cause: genericCause, rank: l.rank, line: l.line, offset: l.offset, severity: SeverityFault, stamp: l.node.stamp}
	if f != nil && f.rank != nil {
		x.rank = f.rank
	}
	x.label = t.rankName(l.node, x.rank)
	x.text = clip(uncoloured(text), maxFaultText)
	return x
}

// cut takes a traceback in which the output ends for an exception, where its frames
// tell what the server was about. What was raised is not known.
func (n *node) cut(f *failure) {
	if f.best == nil && f.frames && f.ours && f.hint != nil && !f.dumped && !f.harness && !f.handled {
		f.offer(f.begin)
	}
}

// settle gives a failure's rank the phase in which it failed and its best fault
// the cause that fits it. A later wrapper may tell more.
func (n *node) settle(f *failure) {
	if f.best == nil {
		n.settleCut(f)
		return
	}
	n.settleFault(f.best, f)
	if phase := n.phaseOf(f.best, f); phase > f.best.rank.phase || !f.best.rank.moved {
		n.ranks.advance(f.best.rank, phase)
	}
}

// settleCut gives the rank of a traceback without its last line the phase that the
// frames imply.
func (n *node) settleCut(f *failure) {
	if f.hint == nil || f.harness || f.rank == nil {
		return
	}
	n.ranks.advance(f.rank, n.phaseOf(&fault{rank: f.rank}, f))
}

func (n *node) settleFault(x *fault, f *failure) {
	r := x.rule
	if r == nil {
		r = x.place
	}
	if r != nil {
		x.cause = r.causeIn(n.phaseOf(x, f), n.begun || f.hint != nil)
	}
}

// phaseOf is the phase in which a fault struck: what the rank had reached, or the
// launch where nobody in particular spoke, or what the frames or the line itself
// imply. An excerpt that shows no start and fails in the event loop failed in
// service; one that shows a start, in warm-up.
func (n *node) phaseOf(x *fault, f *failure) Phase {
	at := n.ranks.phaseOf(x.rank)
	if !x.rank.moved {
		at = n.ranks.phase()
	}
	hint := Starting
	if f != nil && f.hint != nil {
		hint = *f.hint
	} else if x.rule != nil && x.rule.Phase != nil {
		hint = *x.rule.Phase
	}
	if hint > Warmup && (n.begun || n.warming) && !n.isReady() {
		hint = Warmup
	}
	return max(at, hint)
}

func (t *Tracker) clue(x *fault) {
	n := t.line.node
	if len(n.clues) < maxClues {
		n.clues = append(n.clues, x)
	} else {
		n.clues[maxClues-1] = x
	}
	t.emit(Observation{Kind: KindNote, Rule: x.rule.ID, Cause: x.cause, Text: x.text})
}

// faultNews reports a fault: an echo where another failure states the cause.
func (t *Tracker) faultNews(x *fault, f *failure) {
	o := Observation{Kind: KindFault, Cause: x.cause, Certain: f.certain, Text: x.text, Rank: x.label, RankPhase: x.rank.phase}
	if x.rule != nil {
		o.Rule = x.rule.ID
	}
	root := t.line.node.root()
	o.Echo = x.severity == SeverityEcho || root != nil && root != f
	t.emit(o)
}
