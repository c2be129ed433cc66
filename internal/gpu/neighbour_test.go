package gpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNeighbours(t *testing.T) {
	ours := func(pid int) bool { return pid < 100 }
	const total = 100 * gib
	nobody := using(60)
	nobody.Processes = nil
	for name, c := range map[string]struct {
		before, now GPU
		want        []Neighbour
	}{
		"nobody":     {using(0), using(60, process(7, 60)), nil},
		"small":      {using(1, process(500, 1)), using(61, process(500, 1), process(7, 60)), nil},
		"there":      {using(30, process(500, 30)), using(90, process(7, 60), process(500, 30)), []Neighbour{{Total: total, Before: 30 * gib, Holders: []Process{process(500, 30)}}}},
		"came":       {using(0), using(90, process(500, 10), process(7, 60), process(600, 20)), []Neighbour{{Total: total, Grown: 30 * gib, Holders: []Process{process(600, 20), process(500, 10)}}}},
		"a ghost":    {using(30, process(500, 10)), using(90, process(7, 60), process(500, 10)), []Neighbour{{Total: total, Before: 30 * gib, Ghost: 20 * gib, Holders: []Process{process(500, 10)}}}},
		"went":       {using(30, process(500, 30)), using(60, process(7, 60)), []Neighbour{{Total: total, Before: 30 * gib}}},
		"no list":    {nobody, using(90, process(7, 30)), []Neighbour{{Total: total, Before: 60 * gib}}},
		"not told":   {using(30, process(500, 30)), GPU{UUID: "GPU-a", Lost: true}, nil},
		"other GPUs": {using(30, process(500, 30)), GPU{UUID: "GPU-b", Total: total}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Neighbours([]GPU{c.before}, []GPU{c.now}, ours)); diff != "" {
				t.Error(diff)
			}
		})
	}
	// Where pids mean nothing, what was there before the attempt still counts.
	blind := Neighbours([]GPU{using(30, process(500, 30))}, []GPU{using(90, process(48211, 60), process(500, 30))}, nil)
	if diff := cmp.Diff([]Neighbour{{Total: total, Before: 30 * gib}}, blind); diff != "" {
		t.Error(diff)
	}
}

func TestUnexplained(t *testing.T) {
	silent := using(50)
	silent.Processes = nil
	for name, c := range map[string]struct {
		gpu  GPU
		want uint64
	}{
		"empty":           {using(0), 0},
		"explained":       {using(50, process(7, 50)), 0},
		"a part":          {using(50, process(7, 20)), 30 * gib},
		"more than used":  {using(10, process(7, 20)), 0},
		"nobody":          {using(50), 50 * gib},
		"nobody asked":    {silent, 0},
		"one tells not":   {using(50, process(7, 20), Process{PID: 8}), 0},
		"no memory known": {GPU{Processes: []Process{}}, 0},
	} {
		if got := c.gpu.Unexplained(); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
	spinning := using(0)
	spinning.Util = Read(100)
	working := using(10, process(7, 10))
	working.Util = Read(100)
	unasked := spinning
	unasked.Processes = nil
	if !spinning.SpinsAlone() || working.SpinsAlone() || unasked.SpinsAlone() || using(0).SpinsAlone() {
		t.Error("only a GPU at full utilisation with an empty list spins alone")
	}
}
