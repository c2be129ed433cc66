package phases

import "bytes"

var httpMark = []byte("HTTP/1.")

// passes passes over a piece that carries no news, and notes the marks of one
// that may.
func (t *Tracker) passes(p *piece, h *header) bool {
	if t.routine(p, h) {
		return true
	}
	h.marks = t.split.marks(p)
	return h.marks == 0 && t.dull(p, h)
}

// Requests and batches make up most of a long log and carry no news of a server
// that is known to serve.
func isRequest(msg []byte) bool {
	const accessLog = "INFO:     "
	if len(msg) < len(accessLog) || string(msg[:len(accessLog)]) != accessLog {
		return false
	}
	end := msg[max(0, len(msg)-32):] // where it usually stands
	return bytes.Contains(end, httpMark) || bytes.Contains(msg, httpMark)
}

func isBatch(msg []byte) bool {
	const decode, prefill = "Decode batch", "Prefill batch"
	return len(msg) >= len(prefill) && (string(msg[:len(decode)]) == decode || string(msg[:len(prefill)]) == prefill)
}

// serves tells whether a batch is nothing new: none of its work can outlive
// anything or move a phase on.
func (n *node) serves() bool {
	return n.ranks.main.phase == Serving && len(n.failures)+len(n.clues) == 0
}

// routine passes over the requests and batches of a server that is known to
// serve and prints without relays. What it passes over, the long way would pass
// over too.
func (t *Tracker) routine(p *piece, h *header) bool {
	n := t.current
	if !h.stamped || n.source != "" || len(n.open) > 0 || !n.serves() || !isBatch(h.msg) && !isRequest(h.msg) {
		return false
	}
	if bytes.IndexByte(h.msg, '[') >= 0 {
		return false // perhaps another line is glued to it
	}
	return t.pass(p, n, h)
}

// dull passes over a line without marks that nothing else makes special either:
// no relay's prefix, no rank or source that is new, no exception, no failure
// that it could belong to. What it passes over, the long way would pass over
// too.
func (t *Tracker) dull(p *piece, h *header) bool {
	n := t.current
	if n.source != "" || len(n.open) > 0 || t.rules.concern(h.msg) {
		return false
	}
	if !h.stamped && (isPrefixed(h.msg) || exceptionType(h.msg, false) != nil) {
		return false
	}
	return t.pass(p, n, h)
}

// isPrefixed tells whether an unmarked text may begin with more than a message.
func isPrefixed(text []byte) bool {
	c := text[0]
	if c >= 'a' && c <= 'z' {
		return false
	}
	var h header
	return c == '[' || c == '{' || stampEnd(text, &h) > 0 || outerPrefix(text, &h) > 0 || isFrame(text)
}

// pass notes what even a line without news leaves behind, unless its rank is new.
func (t *Tracker) pass(p *piece, n *node, h *header) bool {
	rank := n.ranks.known(h.rank)
	if rank == nil || h.rank != nil && !n.sglang {
		return false
	}
	if h.stamp != nil {
		n.stamp.set(h.stamp)
	}
	if !t.brief && len(h.msg) > 0 {
		t.remember(p, rank, h.msg)
	}
	return true
}

// remember keeps a line as one of its rank's last ones. Where it lies in the
// chunk at hand it is copied when that ends, if it still counts then.
func (t *Tracker) remember(p *piece, rank *rankState, msg []byte) {
	if p.to == 0 {
		rank.last.add(msg)
		return
	}
	rank.last.borrow(msg)
	if !rank.last.borrowed {
		rank.last.borrowed = true
		t.borrowers = append(t.borrowers, &rank.last)
	}
}

// settle ends what was borrowed from a chunk.
func (t *Tracker) settle() {
	for _, l := range t.borrowers {
		l.settle()
	}
	t.borrowers = t.borrowers[:0]
}
