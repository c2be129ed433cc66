package phases

import (
	"bytes"
	"time"
)

// A header is what stands before the message of a line: who wrote it and when.
// Its slices point into the line and live no longer than it.
type header struct {
	source  []byte // who relayed the line: container, pod, Ray actor, Slurm task; nil where nobody did
	rank    []byte // "TP3", "DP1 TP3"; nil for the parent and for single-GPU servers
	number  int    // of a torch or NCCL line: its rank, else -1
	stamp   []byte // "2026-02-19 05:52:10" or a form of it, as printed
	stamped bool   // SGLang's own prefix stood there
	msg     []byte // the rest
	marks   marks  // what the rest may hold
}

// keepStamp keeps a relay's time, of several the first; SGLang's own replaces it.
func (h *header) keepStamp(printed []byte) {
	if h.stamp == nil {
		h.stamp = printed
	}
}

// time reads the stamp; the zero time where there is none or no date in it.
func (h *header) time() time.Time { return parseStamp(h.stamp) }

// A prefixer takes lines apart. Besides scratch memory it holds the habit of the
// relay.
type prefixer struct {
	habit habit
	plain []byte // the line without colours
	inner []byte // the line inside a JSON envelope
}

// parse reads the prefixes of one line, of which h knows what stampEnd finds at
// its begin. before is what stood glued in front of SGLang's own prefix (the
// state of a bar), to be read as a line of its own.
func (p *prefixer) parse(text []byte, h *header) (before []byte) {
	if h.marks&markEscape != 0 || len(text) > 0 && text[0] == '{' {
		text = p.unwrap(text)
		*h = header{number: -1, marks: markAll}
		h.msg = text[stampEnd(text, h):]
	}
	if h.stamped {
		n := p.doubled(text, h)
		if n == 0 {
			return nil
		}
		text = text[n:]
		*h = header{number: -1, marks: h.marks}
	}
	h.strip(text, &p.habit)
	switch {
	case p.habit.known():
	case h.stamped && isDated(text):
		p.dated(text, h)
	case !h.stamped:
		h.msg = h.msg[p.habit.indented(h.msg):]
	}
	if h.stamped || h.marks&markStamp == 0 {
		return nil
	}
	k := findStamp(h.msg, 0)
	if k <= 0 {
		return nil
	}
	head := h.msg[:k]
	h.msg = h.msg[k+stampEnd(h.msg[k:], h):]
	if p.habit.learn(head) {
		return nil
	}
	if bytes.Contains(h.msg, tracebackHead) {
		p.habit.trust(head)
	}
	return head
}

// strip takes off what relays, known and learned, and SGLang itself put before a
// message. A text that is neither coloured nor wrapped needs nothing else.
func (h *header) strip(text []byte, habit *habit) {
	h.msg = text
	taken := false // the habit stands there once
	for range 5 {
		if n := stampEnd(h.msg, h); n > 0 {
			h.msg = h.msg[n:]
			return
		}
		n := outerPrefix(h.msg, h)
		if n == 0 && !taken {
			n, taken = habit.length(h.msg), true
		}
		if n == 0 {
			return
		}
		h.msg = h.msg[n:]
	}
}

// isDated tells a date and a time with a blank between, which any text may begin
// with: only before SGLang's own prefix are they known to be a relay's.
func isDated(text []byte) bool {
	return dateTime.begins(text) && timePrefix(text, new(header)) > 0
}

// dated learns that a relay puts a time before each line, those without SGLang's
// prefix as well.
func (p *prefixer) dated(text []byte, h *header) {
	head := text[:timePrefix(text, new(header))]
	if !p.habit.learn(head) && bytes.Contains(h.msg, tracebackHead) {
		p.habit.trust(head)
	}
}

// doubled is the length of a time in SGLang's own form that a relay put before
// the line: before another prefix, or by habit.
func (p *prefixer) doubled(text []byte, h *header) int {
	if h.rank != nil {
		return 0
	}
	head := text[:len(text)-len(h.msg)]
	if isDoubled(h) {
		p.habit.learn(head)
		return len(head)
	}
	if p.habit.length(text) == len(head) {
		return len(head)
	}
	return 0
}

// unwrap removes colours and the JSON envelope of Docker or another collector.
func (p *prefixer) unwrap(text []byte) []byte {
	if inner, ok := openEnvelope(p.inner[:0], text); ok {
		p.inner, text = inner, inner
	}
	if bytes.IndexByte(text, 0x1b) >= 0 {
		p.plain = stripANSI(p.plain[:0], text)
		text = p.plain
	}
	return text
}

// stampEnd reads SGLang's prefix at the begin of text and returns its length, 0
// where there is none: [2026-02-19 05:52:10 TP0], [05:52:10 TP0], [TP1], and
// the first without its bracket, as it shows where a line was cut.
func stampEnd(text []byte, h *header) int {
	i := 0
	switch {
	case len(text) == 0 || text[0] != '[' && !isDigit(text[0]):
		return 0
	case text[0] == '[':
		i = 1
	}
	n := stampLen(text[i:])
	if n == 0 && i == 0 {
		return 0
	}
	end := i + n
	ranks := rankParts(text[end:], n == 0)
	if ranks < 0 || i == 0 && ranks == 0 {
		return 0
	}
	closed := end + ranks
	if closed >= len(text) || text[closed] != ']' {
		return 0
	}
	if n > 0 {
		h.stamp = text[i:end]
	}
	if ranks > 0 {
		if n > 0 {
			end++ // the blank after the time
		}
		h.rank = text[end:closed]
	}
	h.stamped = true
	closed++
	if closed < len(text) && text[closed] == ' ' {
		closed++
	}
	return closed
}

// isDoubled tells whether a line without a rank has another one's prefix behind
// its own.
func isDoubled(h *header) bool {
	return h.stamped && h.rank == nil && len(h.msg) > 0 && h.msg[0] == '[' && stampEnd(h.msg, new(header)) > 0
}

// The shapes of times.
var (
	dateTime    = newShape("0000-00-00 00:00:00")
	isoTime     = newShape("0000-00-00T00:00:00")
	shortDate   = newShape("00-00 00:00:00")
	timeOfDay   = newShape("00:00:00")
	calendarDay = newShape("0000-00-00")
)

// stampLen is the length of a time at the begin of b: a date and a time, a month,
// a day and a time, or a time alone, each with or without milliseconds.
func stampLen(b []byte) int {
	if len(b) < timeOfDay.length {
		return 0
	}
	form := &dateTime
	switch b[2] {
	case '-':
		form = &shortDate
	case ':':
		form = &timeOfDay
	}
	if !form.begins(b) {
		return 0
	}
	return form.length + millisLen(b[form.length:])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// digitsLen is how many digits text begins with.
func digitsLen(text []byte) (n int) {
	for n < len(text) && isDigit(text[n]) {
		n++
	}
	return n
}

// millisLen is the length of ".123" at the begin of b, else 0.
func millisLen(b []byte) int {
	if len(b) < 4 || b[0] != '.' {
		return 0
	}
	for _, c := range b[1:4] {
		if !isDigit(c) {
			return 0
		}
	}
	return 4
}

// isSGLang tells whether the rank is one that only SGLang has. "[GPU0]" and "[T1]" begin
// lines of other programs.
func (h *header) isSGLang() bool {
	for _, name := range [...]string{"TP", "DP", "PP", "EP", "CP", "ATTN_", "MOE_"} {
		if bytes.HasPrefix(h.rank, []byte(name)) {
			return true
		}
	}
	return false
}

// rankParts is the length of zero or more " NAME7" at the begin of b, -1 where
// something else stands before the bracket. bare: the first one has no blank
// before it, and there must be one.
func rankParts(b []byte, bare bool) int {
	i := 0
	for i < len(b) && b[i] != ']' {
		if !bare {
			if b[i] != ' ' {
				return -1
			}
			i++
		}
		bare = false
		name := i
		for i < len(b) && (b[i] >= 'A' && b[i] <= 'Z' || b[i] == '_') {
			i++
		}
		digits := i
		i += digitsLen(b[i:])
		if digits == name || digits-name > 8 || i == digits || i-digits > 6 {
			return -1
		}
	}
	if bare {
		return -1
	}
	return i
}

// findStamp looks for a full SGLang prefix at or after from, -1 where there is none.
func findStamp(text []byte, from int) int {
	var h header
	for i := from; i < len(text); i++ {
		k := bytes.Index(text[i:], stampMark)
		if k < 0 {
			return -1
		}
		i += k
		if dateTime.begins(text[i+1:]) && stampEnd(text[i:], &h) > 0 {
			return i
		}
	}
	return -1
}

// A stamp keeps a time as it was printed, to be read when somebody asks.
type stamp struct {
	text   [23]byte
	length int
}

func (s *stamp) set(printed []byte) { s.length = copy(s.text[:], printed) }

func (s *stamp) time() time.Time { return parseStamp(s.text[:s.length]) }

// parseStamp reads "2026-02-19 05:52:10" with T or blank and perhaps
// milliseconds. What carries no year is no time.
func parseStamp(b []byte) time.Time {
	if len(b) < 19 || !calendarDay.begins(b) || !timeOfDay.begins(b[11:]) {
		return time.Time{}
	}
	num := func(i, n int) (v int) {
		for _, c := range b[i : i+n] {
			v = v*10 + int(c-'0')
		}
		return v
	}
	nanos := 0
	if millisLen(b[19:]) > 0 {
		nanos = num(20, 3) * int(time.Millisecond)
	}
	if m := num(5, 2); m < 1 || m > 12 {
		return time.Time{}
	}
	return time.Date(num(0, 4), time.Month(num(5, 2)), num(8, 2), num(11, 2), num(14, 2), num(17, 2), nanos, time.UTC)
}
