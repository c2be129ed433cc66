package phases

import (
	"bytes"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// serverArgs begins the line that a start of the server begins with.
var serverArgs = []byte("server_args=")

const (
	maxClues    = 64
	maxRepeats  = 1024
	maxCounters = 1024
	maxActive   = 32
)

// unpadded is a message without the spaces that fill its line, and without the
// border behind them: copied from a terminal, a line may be as wide as that was.
// One space is the message's own: "Error in request: " of an exception without
// words.
func unpadded(msg []byte) []byte {
	msg, bordered := bytes.CutSuffix(msg, border)
	if !bordered && !bytes.HasSuffix(msg, []byte("  ")) {
		return msg
	}
	return bytes.TrimRight(msg, " ")
}

// examine looks at a message with every rule whose literal stands in it.
func (t *Tracker) examine() {
	l := &t.line
	msg := unpadded(l.h.msg)
	if bytes.HasPrefix(msg, serverArgs) {
		t.begin()
		return
	}
	if isFrame(msg) {
		msg, l.dumped = t.asRaised(msg)
	}
	open := l.node.open[l.key]
	inFrames := open != nil && open.frames && !open.message && len(msg) > 0 && msg[0] == ' '
	literal := l.h.marks&markLiteral != 0
	t.found = nil
	if literal {
		t.found = t.memo.match(msg)
	}
	if l.quotes {
		t.apply(msg)
		return
	}
	if len(t.found) > 0 && t.noise(msg, open) {
		return
	}
	if !l.h.stamped && t.traceback(msg, open, inFrames) {
		return
	}
	if !l.h.stamped && l.h.marks&markPercent != 0 {
		t.bars(msg)
	}
	if len(t.found) > 0 {
		t.apply(msg)
	}
	if literal && l.h.stamped && bytes.Contains(msg, tracebackHead) && l.node.open[-1] == nil {
		t.openFailure()
	}
}

// begin starts an attempt. The line holds nearly every keyword: no other rule
// sees it.
func (t *Tracker) begin() {
	n := t.line.node
	n.sglang = true
	if n.started() {
		t.earlier = append(t.earlier, t.summary(n))
		if len(t.earlier) > maxEarlier {
			t.earlier = t.earlier[1:]
		}
		n.reset()
		t.attempts++
	}
	n.begun, n.fromStart = true, true
	t.advance(n.ranks.main, Starting, nil)
}

// noise tells whether a rule knows the line as harmless; nothing else sees it.
func (t *Tracker) noise(msg []byte, open *failure) (harmless bool) {
	for _, m := range t.found {
		harmless = harmless || m.rule.Kind == RuleNoise
	}
	if !harmless {
		return false
	}
	n := t.line.node
	switch {
	case bytes.Contains(msg, tracebackHead):
		n.open[t.line.key] = &failure{harness: true, frames: true}
	case open != nil && isFrame(msg):
		open.harness = true
	}
	return true
}

// apply performs the rules that match a line, in their order. The record of a request
// tells no more than that the server asks itself what it asks when it warms up.
func (t *Tracker) apply(msg []byte) {
	var target *failure
	n := t.line.node
	for i := range t.found {
		m := &t.found[i]
		r := m.rule
		if r.Kind == RuleFrame || r.Kind == RuleNoise || t.line.quotes && r.Kind != RuleEnter {
			continue
		}
		n.seenRules.add(m.number)
		if r.From == "" && r.Kind != RuleFault {
			n.sglang = true
		}
		n.read(m)
		if r.Kind == RuleFault {
			target = t.faultLine(r, msg, m.groups, target)
			continue
		}
		t.perform(r, msg, m.groups)
	}
}

// perform does what a matching rule that is no fault asks for.
func (t *Tracker) perform(r *Rule, msg []byte, groups []int) {
	l := &t.line
	switch r.Kind {
	case RuleEnter:
		t.enter(r)
	case RuleReady:
		t.ready(r)
	case RuleWork:
		t.work(r, msg)
	case RuleDrain:
		l.node.drained = true
		t.emit(Observation{Kind: KindDrain, Rule: r.ID, Text: clip(msg, maxFaultText)})
	case RuleActivity:
		t.activity(r, msg)
	case RuleProgress:
		if l.h.stamped {
			t.countGroups(r, msg, groups)
		}
	case RuleNote:
		if r.Handled {
			l.node.handled = l.line
		}
		if r.Phase != nil && !l.node.begun {
			l.node.inferred = true
			t.raise(*r.Phase, r)
		}
		t.emit(Observation{Kind: KindNote, Rule: r.ID, Text: clip(msg, maxFaultText)})
	}
}

// enter moves the rank to the rule's phase. Once HTTP is up, everybody is there.
func (t *Tracker) enter(r *Rule) {
	l := &t.line
	n := l.node
	n.begun = true
	if *r.Phase >= Warmup {
		if n.ranks.main.phase < *r.Phase {
			n.outlived(nil)
			t.raise(*r.Phase, r)
		}
		return
	}
	if *r.Phase >= KVCache && l.rank.phase < KVCache {
		n.ranks.barrier(l.rank, WeightsLoaded)
	}
	if t.advance(l.rank, *r.Phase, r) {
		n.outlived(l.rank)
	}
}

// ready marks the node's ready moment.
func (t *Tracker) ready(r *Rule) {
	n := t.line.node
	if n.ready {
		return
	}
	n.ready = true
	n.outlived(nil)
	t.raise(Ready, r)
	t.emit(Observation{Kind: KindReady, Rule: r.ID})
	t.checkDrift(n)
}

var runningReq = []byte("#running-req: ")

// work reads a batch line. Before ready it is the warm-up's own request, unless
// several requests run: then the ready line is not in what we were given.
func (t *Tracker) work(r *Rule, msg []byte) {
	n := t.line.node
	n.outlived(nil)
	switch {
	case n.isReady():
	case !n.begun && !n.warming:
		n.inferred = true
	default:
		if k := bytes.Index(msg, runningReq); k >= 0 {
			digits := msg[k+len(runningReq):]
			if running, err := strconv.Atoi(string(digits[:digitsLen(digits)])); err == nil && running >= 2 {
				n.busy++
			}
		}
		n.inferred = n.busy >= 2
	}
	if !n.isReady() {
		t.raise(Warmup, r)
		return
	}
	if n.ranks.main.phase < Serving {
		t.raise(Serving, r)
		t.emit(Observation{Kind: KindServing, Rule: r.ID})
	}
}

// heedsRequests tells whether the access log is all that there is to go by: no line
// of a start was seen, nor work.
func (n *node) heedsRequests() bool { return !n.begun && n.ranks.main.phase < Serving }

var (
	requestPost     = []byte(`"POST /`)
	requestAnswered = []byte(` 200 OK`)
	requestFirst    = []byte(`model_info `)
)

// request reads a line of the access log in an excerpt without a start: HTTP is up,
// and what was posted and answered is work, as a batch is. The warm-up asks for the
// model first, and what it posts then is its own.
func (t *Tracker) request() {
	n, msg := t.line.node, t.line.h.msg
	switch {
	case !n.heedsRequests():
	case bytes.Contains(msg, requestPost) && bytes.Contains(msg, requestAnswered) && !n.warming:
		n.inferred = true
		t.raise(Serving, nil)
		t.emit(Observation{Kind: KindServing})
	default:
		n.warming = bytes.Contains(msg, requestFirst) || n.warming && !bytes.Contains(msg, requestPost)
		t.raise(Warmup, nil)
	}
}

func (t *Tracker) activity(r *Rule, msg []byte) {
	n := t.line.node
	n.begun = true
	if r.Phase != nil {
		t.advance(t.line.rank, *r.Phase, r)
	}
	if !slices.Contains(n.active, r.Activity) && len(n.active) < maxActive {
		n.active = append(n.active, r.Activity)
	}
	t.emit(Observation{Kind: KindActivity, Rule: r.ID, Activity: r.Activity, Text: clip(msg, maxFaultText)})
}

// advance moves one rank on and says so; it tells whether it moved.
func (t *Tracker) advance(rank *rankState, to Phase, r *Rule) bool {
	n := t.line.node
	before := n.ranks.phase()
	if !n.ranks.advance(rank, to) {
		return false
	}
	if rank != n.ranks.main && n.ranks.phase() > before {
		n.outlived(n.ranks.main) // what nobody in particular printed has stopped nobody
	}
	t.moved(n)
	t.phaseNews(rank, r)
	return true
}

// raise moves every rank of the node on and says it once, for main.
func (t *Tracker) raise(to Phase, r *Rule) {
	n := t.line.node
	if n.ranks.main.phase >= to {
		return
	}
	n.ranks.raise(to)
	t.moved(n)
	t.phaseNews(n.ranks.main, r)
}

func (t *Tracker) phaseNews(rank *rankState, r *Rule) {
	n := t.line.node
	n.enter(n.ranks.phase(), t.line.h.stamp)
	o := Observation{Kind: KindPhase, RankPhase: rank.phase, Rank: t.rankName(n, rank)}
	if r != nil {
		o.Rule = r.ID
	}
	t.emit(o)
}

// moved notes the last sign of progress.
func (t *Tracker) moved(n *node) {
	n.moveLine = t.line.line
	n.moveStamp.set(t.line.h.stamp)
}

// emit adds what every observation of this line carries. Who reads a file asks
// for the report only.
func (t *Tracker) emit(o Observation) {
	if t.brief {
		return
	}
	l := &t.line
	o.Offset, o.Line, o.Time = l.offset, l.line, l.h.time()
	if o.Rank == "" {
		o.Rank = t.rankName(l.node, l.rank)
		o.RankPhase = l.rank.phase
	}
	o.Phase = t.Phase()
	t.out = append(t.out, o)
}

// read keeps the numbers of a match for the report.
func (n *node) read(m *match) {
	for _, x := range m.numbers {
		n.numbers[x.name] = x.value
	}
}

// repeated counts the distinct lines in which a rule's key stayed the same, and
// tells whether there are enough of them.
func (t *Tracker) repeated(r *Rule, msg []byte, groups []int) bool {
	if r.Times <= 1 {
		return true
	}
	n := t.line.node
	key := r.ID + "\x00" + string(r.group(msg, groups, "key"))
	if n.repeats[key] == 0 && len(n.repeats) >= maxRepeats {
		return false
	}
	sum := fnv.New64a()
	sum.Write(msg)
	same := key + "\x00" + strconv.FormatUint(sum.Sum64(), 16)
	if n.repeats[same] > 0 {
		return n.repeats[key] >= r.Times
	}
	n.repeats[same] = 1
	n.repeats[key]++
	return n.repeats[key] >= r.Times
}

// checkDrift tells, when a start that was seen from its begin got ready, which
// expected lines never came.
func (t *Tracker) checkDrift(n *node) {
	if !n.fromStart {
		return
	}
	for _, i := range t.rules.expected {
		if !n.seenRules.has(i) {
			n.drift = append(n.drift, t.rules.rules[i].ID)
		}
	}
	if len(n.drift) > 0 {
		t.emit(Observation{Kind: KindDrift, Rule: n.drift[0], Text: "got ready, yet no line matched " + strings.Join(n.drift, ", ")})
	}
}
