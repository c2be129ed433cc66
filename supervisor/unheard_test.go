package supervisor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A stop that reached the shim while no supervisor lived is not lost.
func TestUnheard(t *testing.T) {
	for name, c := range map[string]struct {
		asked []int
		heard int
		want  []int
	}{
		"nothing": {nil, 0, nil}, "heard": {[]int{15}, 1, []int{}}, "not heard": {[]int{15}, 0, []int{15}},
		"the second": {[]int{15, 2}, 1, []int{2}}, "a hangup": {[]int{1}, 0, []int{}}, "by the socket too": {[]int{15}, 3, []int{}},
	} {
		if diff := cmp.Diff(c.want, unheard(c.asked, c.heard)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
