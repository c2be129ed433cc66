package phases

import "bytes"

// outerPrefix reads one prefix that a relay put before the line and returns its
// length, 0 where it knows none. Who relayed it goes to h.source, its time to
// h.stamp, a torch rank to h.number.
//
// The shapes are those of kubectl and CRI, Docker and Compose, Ray, journald,
// Slurm (srun --label), mpirun (--tag-output), cloud log exports, tables of a
// build's log, and torch's own; the margin of a quotation, of a terminal's border or
// of cat -n.
func outerPrefix(text []byte, h *header) int {
	if len(text) == 0 {
		return 0
	}
	if n := tabbedPrefix(text, h); n > 0 {
		return n
	}
	switch c := text[0]; {
	case c == '[':
		if n := bareCode(text); n > 0 {
			return n
		}
		return bracketPrefix(text, h)
	case c == '(':
		return rayPrefix(text, h)
	case isDigit(c) || c == ' ':
		if len(text) > dateTime.length && text[4] == '-' {
			if n := timePrefix(text, h); n > 0 {
				return n
			}
			if n := loggingPrefix(text, h); n > 0 {
				return n
			}
		}
		return slurmPrefix(text, h)
	case c == '>' || c == border[0]:
		return marginLen(text)
	case c >= 'A' && c <= 'Z':
		if n := exportPrefix(text, h); n > 0 {
			return n
		}
		if n := journalPrefix(text, h); n > 0 {
			return n
		}
	}
	if h.marks&markPipe == 0 && h.stamp == nil {
		return 0
	}
	return composePrefix(text, h)
}

// tabbedPrefix: "job\tstep\t2026-02-19T05:52:10.1234567Z " of gh run view,
// "1771480330123\t2026-02-19T05:52:10.123Z\t" of a cloud's export, "    12\t" of cat -n.
func tabbedPrefix(text []byte, h *header) int {
	head := text[:min(len(text), 160)]
	tab := bytes.IndexByte(head, '\t')
	if tab < 0 {
		return 0
	}
	if _, ok := smallNumber(bytes.TrimLeft(head[:tab], " ")); ok && tab == numberWidth {
		return tab + 1
	}
	for range 2 {
		cell := text[tab+1:]
		if n := isoLen(cell); n > 0 && n < len(cell) && (cell[n] == ' ' || cell[n] == '\t') {
			h.keepStamp(cell[:isoTime.length])
			return tab + 1 + n + 1
		}
		next := bytes.IndexByte(head[tab+1:], '\t')
		if next < 0 {
			return 0
		}
		tab += 1 + next
	}
	return 0
}

// numberWidth is how wide cat -n and nl write a line's number.
const numberWidth = 6

// border is the line that tmux and others draw beside a text.
var border = []byte("│")

// marginLen: "> " of a quotation, "│ " of a border.
func marginLen(text []byte) int {
	if bytes.HasPrefix(text, border) {
		return len(border) + skipBlank(text[len(border):])
	}
	if text[0] == '>' && len(text) > 1 && text[1] == ' ' {
		return 2
	}
	return 0
}

// bracketPrefix: "[rank3]: " of torch, "[pod/name/container] " of kubectl,
// "[1,0]<stderr>:" of mpirun, "[sglang]     | " of compose-like runners,
// "[2026-02-19T05:52:10.702Z] " of a build server.
func bracketPrefix(text []byte, h *header) int {
	end := bytes.IndexByte(text[:min(len(text), 160)], ']')
	if end < 2 || bytes.IndexByte(text[:end], ' ') >= 0 {
		return 0
	}
	name := text[1:end]
	if rest, ok := bytes.CutPrefix(name, []byte("rank")); ok {
		n, ok := smallNumber(rest)
		if !ok {
			return 0
		}
		h.number = n
		end++
		if end < len(text) && text[end] == ':' {
			end++
		}
		if end < len(text) && text[end] == ' ' {
			end++
		}
		return end
	}
	for _, stream := range [...]string{"<stdout>:", "<stderr>:"} {
		if bytes.IndexByte(name, ',') > 0 && bytes.HasPrefix(text[end+1:], []byte(stream)) {
			h.source = name
			return end + 1 + len(stream)
		}
	}
	if n := isoLen(name); n > 0 && n == len(name) {
		h.keepStamp(name[:isoTime.length])
		return end + 1 + skipBlank(text[end+1:])
	}
	after := bytes.TrimLeft(text[end+1:], " ")
	if bytes.HasPrefix(after, []byte("| ")) || bytes.Equal(after, []byte("|")) {
		h.source = name
		return len(text) - len(bytes.TrimPrefix(after, []byte("|"))) + skipBlank(after[1:])
	}
	if bytes.HasPrefix(name, []byte("pod/")) && end+1 < len(text) && text[end+1] == ' ' {
		h.source = name
		return end + 2
	}
	return 0
}

func skipBlank(b []byte) int {
	if len(b) > 0 && b[0] == ' ' {
		return 1
	}
	return 0
}

// rayPrefix: "(WorkerDict pid=100863) ", "(pid=100863, ip=192.0.2.7) ".
func rayPrefix(text []byte, h *header) int {
	end := bytes.IndexByte(text[:min(len(text), 160)], ')')
	if end < 0 || !bytes.Contains(text[:end], []byte("pid=")) || end+1 < len(text) && text[end+1] != ' ' {
		return 0
	}
	name := text[1:end]
	h.source = name[bytes.Index(name, []byte("pid=")):]
	return min(end+2, len(text))
}

// timePrefix: "2025-07-25T07:53:08.217+08:00 " with or without CRI's
// "stdout F ", "2025-02-04 21:29:23 " before SGLang's own bracket.
func timePrefix(text []byte, h *header) int {
	if !isoTime.begins(text) && !dateTime.begins(text) {
		return 0
	}
	i := timeLen(text)
	i += bareCodes(text[i:])
	if i >= len(text) || text[i] != ' ' || text[10] == ' ' && (i+1 >= len(text) || text[i+1] != '[') {
		return 0
	}
	i++
	h.keepStamp(text[:dateTime.length])
	if rest := text[i:]; len(rest) > 0 && rest[0] == 's' {
		for _, stream := range [...]string{"stdout F ", "stderr F ", "stdout P ", "stderr P "} {
			if bytes.HasPrefix(rest, []byte(stream)) {
				return i + len(stream)
			}
		}
	}
	return i + tracingPrefix(text[i:])
}

// tracingPrefix: " INFO engine.launch: " after the time, as Rust's tracing and
// servers built on it write, each word perhaps between codes.
func tracingPrefix(text []byte) int {
	rest := bytes.TrimLeft(text, " ")
	rest = bytes.TrimLeft(rest[bareCodes(rest):], " ")
	for _, level := range [...]string{"INFO", "WARN", "ERROR", "DEBUG", "TRACE"} {
		after, ok := bytes.CutPrefix(rest, []byte(level))
		if !ok {
			continue
		}
		if after = after[bareCodes(after):]; len(after) == 0 || after[0] != ' ' {
			return 0
		}
		after = after[1:]
		name := bytes.IndexByte(after, ' ')
		if name < 2 || !bytes.HasSuffix(uncoloured(after[:name]), []byte(":")) {
			return 0
		}
		return len(text) - len(after) + name + 1
	}
	return 0
}

// isoLen is the length of a time with a T in it at the begin of text, else 0.
func isoLen(text []byte) int {
	if !isoTime.begins(text) {
		return 0
	}
	return timeLen(text)
}

// timeLen is the length of a time to the second and of what refines it.
func timeLen(text []byte) int {
	i := dateTime.length
	for i < len(text) && isTimeByte(text[i]) {
		i++
	}
	return i
}

// isTimeByte continues a time: its fraction, its zone.
func isTimeByte(c byte) bool {
	return isDigit(c) || c == '.' || c == '+' || c == '-' || c == ':' || c == 'Z'
}

// loggingPrefix: "2025-03-08 02:04:48,693 - worker - INFO - " of a Python
// program that logs what its server prints.
func loggingPrefix(text []byte, h *header) int {
	if !dateTime.begins(text) || text[19] != ',' {
		return 0
	}
	head := text[:min(len(text), 120)]
	n := 0
	for range 3 { // time, name, level
		k := bytes.Index(head[n:], []byte(" - "))
		if k < 0 {
			return 0
		}
		n += k + len(" - ")
	}
	for _, level := range [...]string{"INFO", "WARNING", "ERROR", "DEBUG"} {
		if bytes.HasSuffix(head[:n], []byte(" - "+level+" - ")) {
			h.keepStamp(text[:dateTime.length])
			return n
		}
	}
	return 0
}

// slurmPrefix: " 3: " of srun --label.
func slurmPrefix(text []byte, h *header) int {
	i := 0
	for i < len(text) && text[i] == ' ' && i < 4 {
		i++
	}
	digits := i
	i += digitsLen(text[i:])
	if i == digits || i-digits > 5 || i+1 >= len(text) || text[i] != ':' || text[i+1] != ' ' {
		return 0
	}
	h.source = text[digits:i]
	return i + 2
}

// exportPrefix: "ERROR 2025-04-05T00:01:19.509514570Z " of cloud log exports.
func exportPrefix(text []byte, h *header) int {
	blank := bytes.IndexByte(text[:min(len(text), 12)], ' ')
	if blank < 0 || !isoTime.begins(text[blank+1:]) {
		return 0
	}
	n := timePrefix(text[blank+1:], h)
	if n == 0 {
		return 0
	}
	return blank + 1 + n
}

// journalPrefix: "Feb 19 05:52:10 host unit[123]: ", the same without its host
// (journalctl --no-hostname); "2026-02-19T05:52:10+0100 host unit[123]: " loses
// its time before.
func journalPrefix(text []byte, h *header) int {
	if len(text) < 20 || text[3] != ' ' {
		return 0
	}
	clock := 7
	if !timeOfDay.begins(text[clock:]) {
		if clock = 6; !timeOfDay.begins(text[clock:]) { // a day of one digit
			return 0
		}
	}
	colon := bytes.Index(text[:min(len(text), 200)], []byte("]: "))
	if colon < clock+timeOfDay.length {
		return 0
	}
	first, rest := firstWord(text[clock+timeOfDay.length : colon])
	second, rest := firstWord(rest)
	switch {
	case len(first) == 0 || len(rest) > 0:
		return 0
	case len(second) > 0:
		h.source = first
	}
	return colon + 3
}

// firstWord cuts a text behind its first word.
func firstWord(text []byte) (word, rest []byte) {
	text = bytes.TrimLeft(text, " ")
	if end := bytes.IndexByte(text, ' '); end >= 0 {
		return text[:end], text[end:]
	}
	return text, nil
}

// composePrefix: "worker-1  | ", and "host unit[123]: " that a journal's ISO
// time left behind.
func composePrefix(text []byte, h *header) int {
	head := text[:min(len(text), 80)]
	blank := bytes.IndexByte(head, ' ')
	if blank <= 0 {
		return 0
	}
	name := text[:blank]
	after := bytes.TrimLeft(text[blank:], " ")
	if bytes.HasPrefix(after, []byte("| ")) || bytes.Equal(after, []byte("|")) {
		if !isServiceName(name) {
			return 0
		}
		h.source = name
		return len(text) - len(after) + 1 + skipBlank(after[1:])
	}
	if len(h.stamp) > 10 && h.stamp[10] == 'T' && h.source == nil {
		if colon := bytes.Index(head, []byte("]: ")); colon > blank && bytes.IndexByte(head[blank+1:colon], ' ') < 0 {
			h.source = name
			return colon + 3
		}
	}
	return 0
}

// isServiceName: letters, digits, dots, dashes, underscores, and no bar drawing.
func isServiceName(b []byte) bool {
	for _, c := range b {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || c == '-' || c == '_' || c == '.'
		if !ok {
			return false
		}
	}
	return len(b) > 0 && (b[0] > '9')
}

func smallNumber(b []byte) (int, bool) {
	if len(b) == 0 || len(b) > 6 {
		return 0, false
	}
	v := 0
	for _, c := range b {
		if !isDigit(c) {
			return 0, false
		}
		v = v*10 + int(c-'0')
	}
	return v, true
}
