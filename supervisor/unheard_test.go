package supervisor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// Ctrl-\ wants the end now, where Ctrl-C lets the server drain.
func TestStopBy(t *testing.T) {
	if quit, interrupt := stopBy(int(unix.SIGQUIT)), stopBy(int(unix.SIGINT)); !quit.Force || interrupt.Force {
		t.Errorf("%+v, %+v", quit, interrupt)
	}
}

// A stop that reached the shim while no supervisor lived is not lost.
func TestUnheard(t *testing.T) {
	for name, c := range map[string]struct {
		asked    []int
		heard    int
		terminal bool
		want     []int
	}{
		"nothing": {nil, 0, false, nil}, "heard": {[]int{15}, 1, false, []int{}}, "not heard": {[]int{15}, 0, false, []int{15}},
		"the second": {[]int{15, 2}, 1, false, []int{2}}, "by the socket too": {[]int{15}, 3, false, []int{}},
		"a reload": {[]int{1}, 0, false, []int{}}, "a terminal that vanished": {[]int{1}, 0, true, []int{1}},
	} {
		if diff := cmp.Diff(c.want, unheard(c.asked, c.heard, c.terminal)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
