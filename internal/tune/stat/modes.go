package stat

import "slices"

// Of values that have two modes, each has modeLeast members, and the gap between
// the two is gapLeast times as wide as the wider of them.
const (
	modesLeast = 6
	modeLeast  = 2
	gapLeast   = 4
)

// Modes parts values that gather at two places, as launches do that are now and
// then caught by something. ok is false where they do not, or are too few to
// tell.
func Modes(values []float64) (low, high []float64, ok bool) {
	if len(values) < modesLeast {
		return nil, nil, false
	}
	sorted := slices.Sorted(slices.Values(values))
	width := func(part []float64) float64 { return part[len(part)-1] - part[0] }
	at := modeLeast
	gap := func(i int) float64 { return sorted[i] - sorted[i-1] }
	for i := at; i <= len(sorted)-modeLeast; i++ {
		if gap(i) > gap(at) {
			at = i
		}
	}
	low, high = sorted[:at], sorted[at:]
	if gap(at) <= gapLeast*max(width(low), width(high)) {
		return nil, nil, false
	}
	return low, high, true
}
