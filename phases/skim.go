package phases

import "bytes"

var (
	decodeBatch  = []byte("Decode batch")
	prefillBatch = []byte("Prefill batch")
	accessLog    = []byte("INFO:     ")
	httpMark     = []byte("HTTP/1.")
)

// passes passes over a piece that carries no news, and notes the marks of one
// that may.
func (t *Tracker) passes(p *piece, h *header) bool {
	if t.routine(h) {
		return true
	}
	h.marks = t.split.marks(p)
	return h.marks == 0 && t.dull(h)
}

// Requests and batches make up most of a long log and carry no news of a server
// that is known to serve.
func isRequest(msg []byte) bool {
	return bytes.HasPrefix(msg, accessLog) && bytes.Contains(msg, httpMark)
}

func isBatch(msg []byte) bool {
	return bytes.HasPrefix(msg, decodeBatch) || bytes.HasPrefix(msg, prefillBatch)
}

// serves tells whether a batch is nothing new: none of its work can outlive
// anything or move a phase on.
func (n *node) serves() bool {
	return n.ranks.main.phase == Serving && len(n.failures)+len(n.clues) == 0
}

// routine passes over the requests and batches of a server that is known to
// serve and prints without relays. What it passes over, the long way would pass
// over too.
func (t *Tracker) routine(h *header) bool {
	n := t.current
	if !h.stamped || n.source != "" || len(n.open) > 0 || !n.serves() || !isBatch(h.msg) && !isRequest(h.msg) {
		return false
	}
	if bytes.IndexByte(h.msg, '[') >= 0 {
		return false // perhaps another line is glued to it
	}
	return t.pass(n, h)
}

// dull passes over a line without marks that nothing else makes special either:
// no relay's prefix, no rank or source that is new, no exception, no failure
// that it could belong to. What it passes over, the long way would pass over
// too.
func (t *Tracker) dull(h *header) bool {
	n := t.current
	if n.source != "" || len(n.open) > 0 || t.rules.concern(h.msg) {
		return false
	}
	if !h.stamped && (isPrefixed(h.msg) || exceptionType(h.msg, false) != nil) {
		return false
	}
	return t.pass(n, h)
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
func (t *Tracker) pass(n *node, h *header) bool {
	rank := n.ranks.known(h.rank)
	if rank == nil || h.rank != nil && !n.sglang {
		return false
	}
	if h.stamp != nil {
		n.stamp.set(h.stamp)
	}
	if !t.brief && len(h.msg) > 0 {
		rank.last.add(h.msg)
	}
	return true
}
