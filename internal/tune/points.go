package tune

import "slices"

// Points are what each launch is measured at, in order: load by load, each from
// its lowest concurrency upward.
func (s Study) Points() []Point {
	var points []Point
	for _, l := range s.Loads {
		for _, c := range l.Concurrency {
			points = append(points, Point{Load: l.Name, Concurrency: c})
		}
	}
	return points
}

// LoadOf is the load of a point. For the probe it is the load whose client is
// used, with the probe's own sizes; the zero Load where the study has none.
func (s Study) LoadOf(p Point) Load {
	i := slices.IndexFunc(s.Loads, func(l Load) bool { return l.Name == p.Load })
	if i < 0 {
		return Load{}
	}
	l := s.Loads[i]
	if p.Probe {
		l.Input, l.Output, l.Requests = s.Probe.Input, s.Probe.Output, s.Probe.Requests
	}
	return l
}

// ProbePoint is the worst case for memory; ok is false where none is wanted.
func (s Study) ProbePoint() (p Point, ok bool) {
	if s.Probe.Concurrency == 0 || len(s.Loads) == 0 {
		return Point{}, false
	}
	name := s.Probe.Load
	if name == "" {
		name = s.Loads[0].Name
	}
	return Point{Load: name, Concurrency: s.Probe.Concurrency, Probe: true}, true
}

// SoakPoint is what warms the GPUs up: the first load at its highest concurrency.
func (s Study) SoakPoint() (p Point, ok bool) {
	if s.Gate.Soak == 0 || len(s.Loads) == 0 {
		return Point{}, false
	}
	l := s.Loads[0]
	return Point{Load: l.Name, Concurrency: l.Concurrency[len(l.Concurrency)-1], Soak: true}, true
}

// RequestsAt is how many requests a run at a point makes.
func (l Load) RequestsAt(concurrency int) int {
	if l.Requests > 0 {
		return max(l.Requests, concurrency)
	}
	return max(32, 8*concurrency)
}
