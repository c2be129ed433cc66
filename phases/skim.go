package phases

import (
	"bytes"
	"slices"
)

var httpMark = []byte("HTTP/1.")

// isRequest tells a line of the access log. Requests and batches make up most of a
// long log and carry no news of a server that is known to serve.
func isRequest(msg []byte) bool {
	const accessLog = "INFO:     "
	if len(msg) < len(accessLog) || string(msg[:len(accessLog)]) != accessLog {
		return false
	}
	end := msg[max(0, len(msg)-32):] // where it usually stands
	return bytes.Contains(end, httpMark) || bytes.Contains(msg, httpMark)
}

// requestRecords are how the record of a request begins (--log-requests).
var requestRecords = [][]byte{[]byte("Receive: obj="), []byte("Finish: obj=")}

// tellsRequest tells the record of a request. It holds what somebody asks and what
// the model answers: their words, among which those of any failure may be, and none
// of the server's.
func tellsRequest(msg []byte) bool {
	return slices.ContainsFunc(requestRecords, func(head []byte) bool { return bytes.HasPrefix(msg, head) })
}

var requestEvent = []byte(`"event": "request.`)

// isRecord tells such a record as JSON, which has no prefix of the server's.
func isRecord(text []byte) bool {
	return len(text) > 0 && text[0] == '{' && bytes.Contains(text[:min(len(text), 80)], requestEvent)
}

// isBatch tells the line that a scheduler prints of its work.
func isBatch(msg []byte) bool {
	const decode, prefill = "Decode batch", "Prefill batch"
	return len(msg) >= len(prefill) && (string(msg[:len(decode)]) == decode || string(msg[:len(prefill)]) == prefill)
}

// serves tells whether a batch is nothing new: none of its work can outlive
// anything or move a phase on.
func (n *node) serves() bool {
	return n.ranks.main.phase == Serving && len(n.failures)+len(n.clues) == 0
}

// isRoutine tells a request or a batch, and nothing else glued to it.
func (h *header) isRoutine() bool {
	return h.stamped && (isBatch(h.msg) || isRequest(h.msg)) && bytes.IndexByte(h.msg, '[') < 0
}

// skip passes over as many lines as it can from a place of the chunk on. It returns
// how many they are and how long.
func (t *Tracker) skip(from int) (size, lines int) {
	switch {
	case t.plodding:
		return 0, 0
	case t.survey != nil:
		return t.survey.pass(t, from)
	}
	return t.skipRoutine(from)
}

// skipRoutine passes over the requests and batches from there on, where a server is
// known to serve and prints without relays. What it passes over, the long way would
// pass over too.
func (t *Tracker) skipRoutine(from int) (size, lines int) {
	n := t.current
	if !n.serves() || n.source != "" || len(n.open) > 0 || t.prefix.habit.known() {
		return 0, 0
	}
	p := t.split.scout.chunk[from:t.split.scout.drawn(from)]
	var h header
	for size < len(p) && p[size] == '[' {
		end := bytes.IndexByte(p[size:], '\n')
		if end < 0 || end > maxPiece {
			break
		}
		line := p[size : size+end]
		h.stamp, h.rank, h.stamped = nil, nil, false
		h.msg = line[stampEnd(line, &h):]
		if !h.isRoutine() || !t.pass(n, &h, true) {
			break
		}
		size += end + 1
		lines++
	}
	return size, lines
}

// dull passes over a line without marks that nothing else makes special either:
// no relay's prefix, no rank or source that is new, no exception, no failure
// that it could belong to. What it passes over, the long way would pass over
// too.
func (t *Tracker) dull(p *piece, h *header) bool {
	if h.marks = t.marks(p, h); h.marks != 0 {
		return false
	}
	n := t.current
	if n.source != "" || len(n.open) > 0 || t.prefix.habit.known() || isPrefixed(h) || h.raises() {
		return false
	}
	if n.heedsRequests() && h.stamped && isRequest(h.msg) {
		return false
	}
	return t.pass(n, h, p.to > 0)
}

// marks says what the rest of a line may hold. What a survey has left over was
// mostly said before, by another rank or in another attempt.
func (t *Tracker) marks(p *piece, h *header) marks {
	if h.stamped && t.survey != nil {
		if found, known := t.memo.marks(h.msg); known {
			return found
		}
	}
	return t.split.marks(p)
}

// raises tells whether a line without marks may yet be of a traceback.
func (h *header) raises() bool {
	msg := unpadded(h.msg)
	return !h.stamped && (isFrame(msg) || exceptionType(msg, false) != nil)
}

// isPrefixed tells whether an unmarked line may hold more than the prefix at its
// begin and a message.
func isPrefixed(h *header) bool {
	if h.stamped {
		return isDoubled(h)
	}
	c := h.msg[0]
	if c >= 'a' && c <= 'z' {
		return false
	}
	var other header
	return c == '[' || c == '{' || stampEnd(h.msg, &other) > 0 || outerPrefix(h.msg, &other) > 0
}

// pass notes what even a line without news leaves behind, unless its rank is new.
// A line that lies in the chunk at hand is copied when that ends, if it is still
// one of its rank's last then.
func (t *Tracker) pass(n *node, h *header, inChunk bool) bool {
	rank := n.ranks.known(h.rank)
	if rank == nil || h.rank != nil && !n.sglang {
		return false
	}
	if h.stamp != nil {
		n.stamp.set(h.stamp)
	}
	switch {
	case t.brief || len(h.msg) == 0:
	case inChunk:
		t.borrow(&rank.last, h.msg)
	default:
		rank.last.add(h.msg)
	}
	return true
}

func (t *Tracker) borrow(last *lastLines, msg []byte) {
	last.borrow(msg)
	if !last.borrowed {
		last.borrowed = true
		t.borrowers = append(t.borrowers, last)
	}
}

// settle ends what was borrowed from a chunk.
func (t *Tracker) settle() {
	for _, l := range t.borrowers {
		l.settle()
	}
	t.borrowers = t.borrowers[:0]
}
