package phases

import (
	"bytes"
	"slices"
)

const (
	maxFailures  = 256 // kept of one attempt; later ones are only counted
	maxFaultText = 500 // bytes of a fault's text
)

// A fault is one failure-indicating line.
type fault struct {
	rule     *Rule // nil: an exception that no rule knows
	place    *Rule // of such an exception: the frame rule that tells what it means where it was raised
	severity Severity
	cause    string
	rank     *rankState
	label    string // the rank's name as reported
	line     int
	offset   int64
	stamp    stamp
	text     string
}

// strength orders faults by how well they state a cause.
func (f *fault) strength() int {
	switch {
	case f == nil:
		return 0
	case f.rule == nil:
		return 5 // an exception of its own
	}
	switch f.severity {
	case SeverityDetail:
		return 7
	case SeverityFault:
		return 6
	case SeverityWrapper:
		return 4
	case SeverityEcho:
		return 3
	case SeverityMarker:
		return 2
	}
	return 1
}

// stands tells a fault that states a cause of its own from mere consequences.
func (f *fault) stands() bool { return f.strength() >= 5 }

// A failure is one episode of one rank: a traceback with its message, or a
// single line. Its best fault speaks for it.
type failure struct {
	best    *fault
	rank    *rankState
	source  string // who relayed its first line
	certain bool   // some line of it proves that the launch or server failed
	hint    *Phase // what the deepest telling frame says of the phase
	harness bool   // a test program's own traceback: never a failure of the server
	handled bool   // the program said that it went on: a failure only where something else proves one
	ours    bool   // a frame lies in sglang
	logged  bool   // a log message in one line: whoever wrote it went on
	frames  bool   // traceback frames were seen
	dumped  bool   // they are of a dump: where a thread stood, not what it raised
	begin   *fault // its first line, as an exception that nobody knows
	files   []string
	places  []*Rule // rules of the deepest frame that tell what exceptions raised there mean
	message bool    // the last exception line has come; what follows is its text
}

// offer lets a fault speak for the failure where it states the cause better.
func (f *failure) offer(x *fault) {
	if x.strength() > f.best.strength() {
		f.best = x
	}
}

// knows tells whether a frame of that phase is no news after those before it.
func (f *failure) knows(phase Phase, dumped bool) bool {
	return f.hint != nil && phase < *f.hint && (dumped || *f.hint == Serving)
}

// place is the rule that tells what an exception of that class means where it was
// raised, nil where none does.
func (f *failure) place(class []byte) *Rule {
	for _, r := range f.places {
		if slices.Contains(r.Raises, string(class)) {
			return r
		}
	}
	return nil
}

// exceptionType returns the class of a final traceback line, nil where the line
// is none: "torch.OutOfMemoryError: CUDA out of memory", "AssertionError". In a
// traceback every dotted name will do; elsewhere it must end like an exception.
func exceptionType(msg []byte, inTraceback bool) []byte {
	if len(msg) < 4 || isDigit(msg[0]) || msg[0] == '.' {
		return nil
	}
	end := 0
	for end < len(msg) && end < 120 && isNameByte(msg[end]) {
		end++
	}
	if end < 4 {
		return nil
	}
	name, rest := msg[:end], bytes.TrimRight(msg[end:], " ")
	if len(rest) > 0 && !bytes.HasPrefix(rest, []byte(": ")) && !bytes.Equal(rest, []byte(":")) {
		return nil
	}
	last := name[bytes.LastIndexByte(name, '.')+1:]
	for _, suffix := range [...]string{"Error", "Exception", "Interrupt", "Exit", "OutOfResources", "NotFound"} {
		if bytes.HasSuffix(last, []byte(suffix)) {
			return name
		}
	}
	if inTraceback && len(last) > 0 && last[0] >= 'A' && last[0] <= 'Z' && len(rest) > 0 {
		return name
	}
	return nil
}

func isNameByte(c byte) bool { return nameBytes[c] }

var nameBytes = func() (is [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") {
		is[c] = true
	}
	return is
}()

// fails tells whether a failure that ends the output is one of the server's.
// An exception that nobody knows, in a server that had been ready, may be that
// of a client in the same terminal.
func (f *failure) fails(ready bool) bool {
	switch {
	case f.certain:
		return true
	case f.handled:
		return false
	case !ready:
		return true
	case f.logged: // a ready server has lived to log it
		return f.best.rule.Times > 1
	}
	return f.best.rule != nil || f.ours
}

// isFrame tells a traceback's frame line, also of one out of a JSON string, and of
// one whose indentation was lost on the way.
func isFrame(msg []byte) bool {
	rest, ok := bytes.CutPrefix(msg, []byte("  File "))
	if !ok {
		return bytes.HasPrefix(msg, bareFrame) && bytes.Contains(msg, frameLine)
	}
	return bytes.HasPrefix(rest, []byte(`"`)) || bytes.HasPrefix(rest, escapedQuote)
}

var escapedQuote = []byte(`\"`)

var (
	bareFrame     = []byte(`File "`)
	frameLine     = []byte(`", line `)
	tracebackHead = []byte("Traceback (most recent call last)")
	chainHandling = []byte("During handling of the above exception")
	chainDirect   = []byte("The above exception was the direct cause")
)

// isChain tells the line between two exceptions of one traceback.
func isChain(msg []byte) bool {
	return bytes.HasPrefix(msg, chainHandling) || bytes.HasPrefix(msg, chainDirect)
}

// clip cuts a text at a length, never inside a character.
func clip(b []byte, n int) string {
	if len(b) <= n {
		return string(b)
	}
	for n > 0 && b[n]&0xC0 == 0x80 {
		n--
	}
	return string(b[:n])
}
