package shim

import "sort"

// lane is one of the streams that make up the output of a server on pipes. On a
// pty there is one only.
type lane int8

const (
	both   lane = iota // every byte, in the order of arrival
	output             // standard output
	errout             // standard error
)

// turnsKept bounds the memory of whose turn it was. Beyond it old output can no
// longer be told apart.
const turnsKept = 1 << 18

// turns remembers which stretch of the merged output came from which lane.
type turns struct {
	list  []turn
	floor int64 // before this it is forgotten
}

// turn is a stretch of one lane that ends before to; it begins where the turn
// before it ends.
type turn struct {
	to int64
	l  lane
}

func (t *turns) add(l lane, to int64) {
	if l == both {
		return
	}
	if n := len(t.list); n > 0 && t.list[n-1].l == l {
		t.list[n-1].to = to
		return
	}
	if len(t.list) == turnsKept {
		half := turnsKept / 2
		t.floor = t.list[half-1].to
		t.list = append(t.list[:0], t.list[half:]...)
	}
	t.list = append(t.list, turn{to, l})
}

// find returns the first stretch of a lane at or after offset; it is empty
// where there is none. Missing counts bytes whose lane was forgotten.
func (t *turns) find(offset, end int64, l lane) (from, to, missing int64) {
	if l == both || offset >= end {
		return offset, end, 0
	}
	if offset < t.floor {
		return offset, offset, t.floor - offset
	}
	i := sort.Search(len(t.list), func(i int) bool { return t.list[i].to > offset })
	if i < len(t.list) && t.list[i].l != l {
		offset = t.list[i].to
		i++
	}
	if i >= len(t.list) || t.list[i].l != l {
		return end, end, 0
	}
	return offset, t.list[i].to, 0
}
