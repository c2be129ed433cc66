package tune

import (
	"slices"
	"testing"
)

func TestCPUs(t *testing.T) {
	for text, want := range map[string][]int{
		"0": {0}, "0-3": {0, 1, 2, 3}, "8, 0-1,1": {0, 1, 8}, "5-5": {5},
		"": nil, "0-": nil, "-1": nil, "3-1": nil, "0,,1": nil, "a": nil, "0-99999999999": nil, "0-8192": nil,
	} {
		got, err := ParseCPUs(text)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if got := CPUsText([]int{0, 1, 2, 5, 8, 9}); got != "0-2,5,8-9" {
		t.Error(got)
	}
}
