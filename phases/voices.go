package phases

// A voice is who speaks in a line: a rank of a source.
type voice struct {
	source int // its place among the sources
	rank   []byte
}

// Bounds of one chunk: voices are bits of a run.
const (
	maxVoices  = 64
	maxSources = 16
)

// voices are those heard in a chunk, and what a tracker knows of them.
type voices struct {
	sources [][]byte
	list    []voice
	ranked  uint64    // those that name a rank
	latest  [16]uint8 // of those whose rank ends with the same letter, the one that spoke last

	attempts int // starts and nodes of the tracker when it was asked
	nodes    [maxSources]*node
	known    uint64 // voices that have spoken before
}

func (v *voices) reset() {
	v.sources, v.list, v.ranked, v.attempts = v.sources[:0], v.list[:0], 0, -1
}

// hear is the place of a line's voice; ok is false where there are too many.
func (v *voices) hear(h *header) (place int, isNew, ok bool) {
	latest := &v.latest[0]
	if n := len(h.rank); n > 0 {
		latest = &v.latest[h.rank[n-1]&15]
	}
	if place = int(*latest); place < len(v.list) && v.is(place, h) {
		return place, false, true
	}
	for place := range v.list {
		if v.is(place, h) {
			*latest = uint8(place)
			return place, false, true
		}
	}
	source, ok := v.source(h.source)
	if !ok || len(v.list) == maxVoices {
		return 0, false, false
	}
	place = len(v.list)
	v.list = append(v.list, voice{source: source, rank: h.rank})
	if h.rank != nil {
		v.ranked |= 1 << place
	}
	return place, true, true
}

// is tells whether a voice is that of a line.
func (v *voices) is(place int, h *header) bool {
	one := &v.list[place]
	return string(one.rank) == string(h.rank) && string(v.sources[one.source]) == string(h.source)
}

// source is the place of a source; ok is false where there are too many.
func (v *voices) source(name []byte) (place int, ok bool) {
	for i, known := range v.sources {
		if string(known) == string(name) {
			return i, true
		}
	}
	if len(v.sources) == maxSources {
		return 0, false
	}
	v.sources = append(v.sources, name)
	return len(v.sources) - 1, true
}

// have tells whether a tracker has heard all of some voices before.
func (v *voices) have(spoken uint64, t *Tracker) bool {
	if v.attempts != t.attempts {
		v.attempts, v.known = t.attempts, 0
		for i, name := range v.sources {
			v.nodes[i] = t.bySource[string(name)]
		}
	}
	if spoken&^v.known == 0 {
		return true
	}
	for i, one := range v.list {
		if n := v.nodes[one.source]; n != nil && n.ranks.known(one.rank) != nil {
			v.known |= 1 << i
		}
	}
	return spoken&^v.known == 0
}
