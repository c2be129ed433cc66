package tune

import "fmt"

// Opening is how the server got the first prompts of a run, by its own words: the
// first batch that it prefilled. Nothing of the run was there before it, so what
// it found in an empty prefix cache is nothing.
type Opening struct {
	Computed int `json:"computed"` // tokens
	Cached   int `json:"cached"`   // tokens that were found in the prefix cache
}

// reusedMost is the share of the first prompts that may be found in a cache which
// was emptied: a token or two that every prompt begins with.
const reusedMost = 0.1

// reused is the share of the first prompts that was found in the prefix cache.
func (w Window) reused() float64 {
	if w.Opening == nil || w.Opening.Cached == 0 {
		return 0
	}
	return float64(w.Opening.Cached) / float64(w.Opening.Computed+w.Opening.Cached)
}

// stale tells that the prefix cache was to be empty, and was not.
func (w Window) stale() bool { return w.Emptied && w.reused() > reusedMost }

// Emptiness is what is known of the prefix cache of runs before which it was to
// be emptied.
type Emptiness struct {
	Proven   int // runs whose first prompts were computed
	Unproven int // the server says nothing of its prompts
	Refuted  int // the first prompts came from the cache
}

// Count adds a run.
func (e *Emptiness) Count(m Measured) {
	switch w := m.Window; {
	case !w.Emptied:
	case w.Opening == nil:
		e.Unproven++
	case w.stale():
		e.Refuted++
	default:
		e.Proven++
	}
}

// String says it in a sentence; "" where nothing was to be emptied.
func (e Emptiness) String() string {
	all := e.Proven + e.Unproven + e.Refuted
	if all == 0 {
		return ""
	}
	text := fmt.Sprintf("that it was empty is proven for %d of the %d runs before which it was emptied", e.Proven, all)
	if e.Unproven > 0 {
		text += fmt.Sprintf("; not proven for %d, as the server printed nothing of its prefills", e.Unproven)
	}
	if e.Refuted > 0 {
		text += fmt.Sprintf("; refuted for %d, whose points a fresh server measured", e.Refuted)
	}
	return text
}
