package phases

import "bytes"

// stripANSI appends text without escape sequences (CSI, OSC and the short ones).
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
	case '[':
		for i := 1; i < len(text); i++ {
			if text[i] >= 0x40 && text[i] <= 0x7e {
				return i + 1
			}
		}
		return len(text)
	case ']':
		if end := bytes.IndexByte(text, 0x07); end >= 0 {
			return end + 1
		}
		return len(text)
	}
	return 1
}

// bareCode is the length of a colour code that has lost its escape byte: "[31m".
// Relays and copies of logs leave such.
func bareCode(text []byte) int {
	if len(text) < 3 || text[0] != '[' || text[1] < '0' || text[1] > '9' {
		return 0
	}
	for i, c := range text[1:min(len(text), 16)] {
		switch {
		case c == 'm':
			return i + 2
		case c != ';' && (c < '0' || c > '9'):
			return 0
		}
	}
	return 0
}

// uncoloured is the longest stretch of a message's text that holds no colours,
// so that it stands in the raw line just as it is told.
func uncoloured(text, raw []byte) (best []byte) {
	at := bytes.Index(stripANSI(nil, raw), text)
	if at < 0 { // it was wrapped in something else
		raw, at = text, 0
	}
	inText := func(i int) int { return max(0, min(i-at, len(text))) }
	stretches(raw, func(from, to int) {
		if part := bytes.TrimSpace(text[inText(from):inText(to)]); len(part) > len(best) {
			best = part
		}
	})
	return best
}

// stretches calls f for each stretch of a raw line between colours, with its
// place in the line without escape sequences.
func stretches(raw []byte, f func(from, to int)) {
	begin, pos := 0, 0
	for i := 0; i < len(raw); {
		escaped, bare := 0, bareCode(raw[i:])
		if raw[i] == 0x1b {
			escaped = 1 + escapeLen(raw[i+1:])
		}
		if escaped+bare == 0 {
			i, pos = i+1, pos+1
			continue
		}
		f(begin, pos)
		i, pos = i+escaped+bare, pos+bare
		begin = pos
	}
	f(begin, pos)
}
