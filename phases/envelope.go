package phases

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// openEnvelope finds the line that Docker or another collector has put into a JSON
// object, and appends it to an empty dst; ok is false where text is none.
//
//	{"log":"[2026-02-19 05:48:02] x\n","stream":"stderr","time":"2026-02-19T05:48:02Z"}
func openEnvelope(dst, text []byte) (line []byte, ok bool) {
	if len(text) < 3 || text[0] != '{' || text[1] != '"' || text[len(text)-1] != '}' {
		return dst, false
	}
	line, ok = openPlain(dst, text)
	if !ok {
		line, ok = openAny(dst, text)
	}
	return bytes.TrimRight(line, "\r\n"), ok
}

// openAny opens an envelope of any form.
func openAny(dst, text []byte) (line []byte, ok bool) {
	var envelope struct{ Log, Message, Msg, Content string }
	if json.Unmarshal(text, &envelope) != nil {
		return dst, false
	}
	inner := cmp.Or(envelope.Log, envelope.Message, envelope.Msg, envelope.Content)
	return append(dst, inner...), inner != ""
}

// openPlain opens an envelope as collectors write it: texts alone, under names of
// small letters, one of which holds the line. Of any other form it knows nothing.
func openPlain(dst, text []byte) (line []byte, ok bool) {
	line = dst
	for rest := text[1:]; ; {
		name, after, found := cutName(rest)
		if !found {
			return dst, false
		}
		if holdsLine(name) {
			if len(line) > len(dst) {
				return dst, false
			}
			line, after = appendText(line, after)
		} else {
			after = skipText(after)
		}
		switch {
		case len(after) == 0:
			return dst, false
		case after[0] == '}':
			return line, len(after) == 1 && len(line) > len(dst)
		case after[0] != ',':
			return dst, false
		}
		rest = after[1:]
	}
}

func holdsLine(name []byte) bool {
	switch string(name) {
	case "log", "message", "msg", "content":
		return true
	}
	return false
}

// cutName cuts `"name":"` off.
func cutName(text []byte) (name, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return nil, nil, false
	}
	end := 1
	for end < len(text) && (text[end] >= 'a' && text[end] <= 'z' || text[end] == '_') {
		end++
	}
	rest, ok = bytes.CutPrefix(text[end:], []byte(`":"`))
	return text[1:end], rest, ok
}

// skipText is what stands behind the end of a text without escapes; nil where there
// is none.
func skipText(text []byte) (rest []byte) {
	end := plainLen(text)
	if end == len(text) || text[end] != '"' {
		return nil
	}
	return text[end+1:]
}

// appendText decodes a text up to its end and tells what stands behind that; nil
// where it is not valid.
func appendText(dst, text []byte) (decoded, rest []byte) {
	from := len(dst)
	for {
		i := plainLen(text)
		if i == len(text) {
			return dst, nil
		}
		dst = append(dst, text[:i]...)
		if text[i] == '"' {
			if !utf8.Valid(dst[from:]) {
				return dst, nil
			}
			return dst, text[i+1:]
		}
		r, size := escaped(text[i:])
		if size == 0 {
			return dst, nil
		}
		dst = utf8.AppendRune(dst, r)
		text = text[i+size:]
	}
}

// plainLen is how much of a text stands for itself: up to a quote, a backslash or a
// control. It looks at eight bytes at once.
func plainLen(text []byte) int {
	i := 0
	for ; i+8 <= len(text); i += 8 {
		x := binary.LittleEndian.Uint64(text[i:])
		if odd := below(x, ' ') | below(x^'"'*ones, 1) | below(x^'\\'*ones, 1); odd != 0 {
			return i + bits.TrailingZeros64(odd)/8
		}
	}
	for ; i < len(text) && text[i] >= ' ' && text[i] != '"' && text[i] != '\\'; i++ {
	}
	return i
}

const ones = 0x0101010101010101

// below marks the bytes of x that are less than a limit, the first of them and none
// before it.
func below(x, limit uint64) uint64 { return (x - limit*ones) & ^x & (0x80 * ones) }

// escaped reads an escape; its size is 0 where it is none or half of a character.
func escaped(text []byte) (r rune, size int) {
	if len(text) < 2 || text[0] != '\\' {
		return 0, 0
	}
	switch text[1] {
	case '"', '\\', '/':
		return rune(text[1]), 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'u':
		if len(text) < 6 {
			return 0, 0
		}
		code, err := strconv.ParseUint(string(text[2:6]), 16, 16)
		if r = rune(code); err != nil || utf16.IsSurrogate(r) {
			return 0, 0
		}
		return r, 6
	}
	return 0, 0
}
