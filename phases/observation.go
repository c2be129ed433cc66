package phases

import "time"

// Kind says what an Observation tells.
type Kind string

// The kinds of observation.
const (
	KindPhase    Kind = "phase"    // the phase of a rank, and perhaps of the launch, has moved on
	KindProgress Kind = "progress" // a counter grew: Done of Total in Unit
	KindReady    Kind = "ready"    // the server said that it is ready
	KindServing  Kind = "serving"  // the first work after ready
	KindFault    Kind = "fault"    // a failure-indicating line: Cause, Echo, Certain
	KindDrain    Kind = "drain"    // the server began an orderly shutdown
	KindActivity Kind = "activity" // work inside a phase that may be long and silent: Activity
	KindNote     Kind = "note"     // worth telling, never a failure
	KindDrift    Kind = "drift"    // told once after ready: an expected rule never matched
)

// Observation is one fact learnt from the output. Offset and Line say where.
type Observation struct {
	Kind   Kind      `json:"kind"`
	Rule   string    `json:"rule,omitempty"` // id of the rule that matched
	Offset int64     `json:"offset"`         // of the line's first byte in the stream
	Line   int       `json:"line"`           // from 1; a line ends at \n
	Time   time.Time `json:"time,omitzero"`  // as printed in the line; zero where it prints none
	Rank   string    `json:"rank,omitempty"` // "TP3", "DP1 TP3", "main", ...

	RankPhase Phase `json:"rank_phase"` // of that rank after this line
	Phase     Phase `json:"phase"`      // of the launch (its slowest rank) after this line

	Done  int64  `json:"done,omitempty"`
	Total int64  `json:"total,omitempty"`
	Unit  string `json:"unit,omitempty"` // shards, graphs, profiles, bytes, files

	Activity string `json:"activity,omitempty"` // download, jit_compile, deepgemm_warmup, torch_compile, weight_postprocess

	Cause   string `json:"cause,omitempty"`   // of a fault: a name of Causes
	Certain bool   `json:"certain,omitempty"` // of a fault: the output itself shows that the launch or server failed
	Echo    bool   `json:"echo,omitempty"`    // of a fault: a consequence of an earlier one

	Text string `json:"text,omitempty"` // the telling part of the line, without prefix and colours, bounded
}
