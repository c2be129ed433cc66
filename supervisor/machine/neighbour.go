package machine

import "strings"

// Neighbour is memory of a GPU of the launch that somebody else holds.
type Neighbour struct {
	GPU    int    `json:"gpu"`
	Total  uint64 `json:"total"`
	Before uint64 `json:"before,omitempty"` // bytes in use before the attempt
	Grown  uint64 `json:"grown,omitempty"`  // bytes that others have taken since
	Ghost  bool   `json:"ghost,omitempty"`  // most of Before is held by no process at all
	Text   string `json:"text"`             // who holds how much, for a person
}

// Notable is how many bytes a neighbour may come with before it explains anything.
const Notable = 1 << 30

// explains reports whether the launch may have failed for this neighbour. SGLang
// sizes its pool around what it finds, so what was there before explains only
// weights and a pool that do not fit beside it, and only a good part of the
// GPU; what came later was in nobody's sum.
func (n Neighbour) explains(cause string) bool {
	switch cause {
	case "oom_weights", "oom_kv_cache", "mem_fraction_too_low":
		return n.Grown > Notable || n.Before > Notable && n.Before >= n.Total/10
	case "oom_graph_capture", "oom_runtime":
		return n.Grown > Notable
	}
	return false
}

// blameNeighbour: where a neighbour explains that the memory was not enough,
// neither a change of the launch nor giving up is called for, but patience. A
// ghost has none to wait for.
func (m *Machine) blameNeighbour() {
	r := &m.run
	cause, who, beside := "gpu_ghost", []string(nil), []Neighbour(nil)
	for _, n := range r.Neighbours {
		if n.explains(r.Cause) {
			who, beside = append(who, n.Text), append(beside, n)
			if !n.Ghost {
				cause = "gpu_memory_held"
			}
		}
	}
	if len(who) == 0 || r.Asked {
		return
	}
	why := r.Cause + " beside a neighbour: " + strings.Join(who, "; ")
	m.say("fault", why, "cause", cause)
	r.Cause, r.Why, r.Proven = cause, why, true
	m.beside = beside
}
