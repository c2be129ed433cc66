package stat

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestModes(t *testing.T) {
	for name, tt := range map[string]struct {
		values []float64
		low    []float64 // nil = one mode
	}{
		"caught now and then":      {[]float64{1, 1.01, 0.64, 0.99, 1, 0.65, 1.01}, []float64{0.64, 0.65}},
		"half and half":            {[]float64{1, 2, 1.01, 2.01, 1.02, 2.02}, []float64{1, 1.01, 1.02}},
		"one is out":               {[]float64{1, 1.01, 0.5, 0.99, 1, 1.02}, nil},
		"spread":                   {[]float64{1, 2, 3, 4, 5, 6}, nil},
		"too few":                  {[]float64{1, 1, 2, 2, 2}, nil},
		"equal":                    {[]float64{1, 1, 1, 1, 1, 1}, nil},
		"two, neither of them far": {[]float64{1, 1.1, 1.2, 1.5, 1.6, 1.7}, nil},
	} {
		low, high, ok := Modes(tt.values)
		if ok != (tt.low != nil) || !slices.Equal(low, tt.low) || ok && len(low)+len(high) != len(tt.values) {
			t.Errorf("%s: %v and %v, %v", name, low, high, ok)
		}
	}
}

// One mode is seldom taken for two.
func TestOneMode(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	const nights = 20_000
	for _, n := range []int{6, 8, 12} {
		wrong := 0
		for range nights {
			values := make([]float64, n)
			for i := range values {
				values[i] = random.NormFloat64()
			}
			if _, _, two := Modes(values); two {
				wrong++
			}
		}
		t.Logf("%d launches: %.2f %%", n, 100*float64(wrong)/nights)
		if wrong > nights/100 {
			t.Errorf("of %d launches with one mode, %d in %d are said to have two", n, wrong, nights)
		}
	}
}
