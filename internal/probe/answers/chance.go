package answers

import "math"

// Confidence is the chance with which a check means to see a fault.
const Confidence = 0.95

// Smallest is the smallest rate that n answers show at least once with the
// given confidence; 1 where there are none.
func Smallest(n int, confidence float64) float64 {
	if n <= 0 {
		return 1
	}
	return 1 - math.Pow(1-confidence, 1/float64(n))
}

// atLeast is the chance that of n answers k or more are spoilt where each is
// with the chance rate.
func atLeast(k, n int, rate float64) float64 {
	if k <= 0 {
		return 1
	}
	below, term := 0.0, math.Pow(1-rate, float64(n)) // exactly 0 of n
	for i := range k {
		below += term
		term *= float64(n-i) / float64(i+1) * rate / (1 - rate)
	}
	return max(0, 1-below)
}
