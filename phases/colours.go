package phases

import "bytes"

// stripANSI appends text without escape sequences, as ECMA-48 shapes them: what a
// terminal would show of it. Nothing but a whole sequence is taken out: one that is
// broken off, by the line's end or by the next, loses its begin only. A terminal
// would swallow what follows; it may be what the reader looks for.
func stripANSI(dst, text []byte) []byte {
	for len(text) > 0 {
		esc := bytes.IndexByte(text, 0x1b)
		if esc < 0 {
			return append(dst, text...)
		}
		dst = append(dst, text[:esc]...)
		text = text[esc+1:]
		text = text[escapeLen(text):]
	}
	return dst
}

// escapeLen is the length of the sequence after its escape byte.
func escapeLen(text []byte) int {
	if len(text) == 0 {
		return 0
	}
	switch text[0] {
	case '[': // CSI
		return 1 + finalLen(text[1:], 0x20, 0x3f)
	case ']', 'P', 'X', '^', '_': // OSC, DCS, SOS, PM, APC
		return 1 + stringLen(text[1:], text[0] == ']')
	}
	return finalLen(text, 0x20, 0x2f)
}

// finalLen is the length of bytes between two values and the final one after
// them, if it is one.
func finalLen(text []byte, low, high byte) int {
	for i, c := range text {
		switch {
		case c >= low && c <= high:
		case c > high && c <= 0x7e:
			return i + 1
		default:
			return i
		}
	}
	return len(text)
}

// stringLen is the length of a control string and of its end, which is ESC \ and,
// where a bell ends it, BEL; 0 where it has no end.
func stringLen(text []byte, bell bool) int {
	own, next, more := bytes.Cut(text, []byte{0x1b})
	if end := bytes.IndexByte(own, 0x07); bell && end >= 0 {
		return end + 1
	}
	if more && len(next) > 0 && next[0] == '\\' {
		return len(own) + 2
	}
	return 0
}

// bareCode is the length of a colour code that has lost its escape byte: "[31m".
// Relays and copies of logs leave such.
func bareCode(text []byte) int {
	if len(text) < 3 || text[0] != '[' || !isDigit(text[1]) {
		return 0
	}
	for i, c := range text[1:min(len(text), 16)] {
		switch {
		case c == 'm':
			return i + 2
		case c != ';' && !isDigit(c):
			return 0
		}
	}
	return 0
}

// bareCodes is the length of all such codes at the begin.
func bareCodes(text []byte) (size int) {
	for {
		n := bareCode(text[size:])
		if n == 0 {
			return size
		}
		size += n
	}
}

// uncoloured is a message's text without such codes in it and blanks around it.
func uncoloured(text []byte) []byte {
	var plain []byte
	from := 0
	for i := 0; i < len(text); i++ {
		if n := bareCode(text[i:]); n > 0 {
			plain = append(plain, text[from:i]...)
			from = i + n
			i = from - 1
		}
	}
	return bytes.TrimSpace(append(plain, text[from:]...))
}
