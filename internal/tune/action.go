package tune

import "time"

// Action is the one thing to do next. It stays the same until a record says
// that it was done, so an action may be asked for, and begun, twice.
type Action interface{ action() }

// Note asks for a record of what was decided; then Next is asked again.
type Note struct{ Body Body }

// Settle asks for the gate: own processes gone, memory and ports free, GPUs
// cool enough, nobody else there. Answered by Settled.
type Settle struct {
	After int
	Until time.Time // at most
}

// Launch asks for a launch: write Intended, start it (Launched), wait for Ready
// or Ended. At Until it is stopped and Ended with outcome timed_out.
type Launch struct {
	Intended
	Until time.Time
	Cold  bool // with empty compile and autotune caches of its own
	Why   string
}

// Ask asks for the answers to the fixed prompts, and for the word of the study's
// own command where Eval is set; answered by Answered.
type Ask struct {
	Launch int
	Eval   bool
	Until  time.Time
}

// Flush asks for an empty prefix cache, answered by Flushed.
type Flush struct{ Launch int }

// Measure asks for a run of the bench client: write Measuring, run it, write
// Measured; or Ended, where the server died of it.
type Measure struct {
	Launch int
	Point  Point
	Until  time.Time
}

// Stop asks for the end of a launch, answered by Ended with outcome stopped; or,
// where there is a Cause that the launch was found to have, with that and unhealthy.
type Stop struct {
	Launch int
	Why    string
	Cause  string // of the vocabulary; "" = none
}

// HandOver asks that a launch goes on serving, answered by Serving.
type HandOver struct {
	Launch int
	Trial  string
}

// Wait asks for nothing until a time, or until a record arrives.
type Wait struct {
	Until time.Time
	Why   string
}

// End says that the night is over. Serving is the launch that was handed over,
// 0 where nothing could be made to serve.
type End struct {
	Done
	Serving int
}

func (Note) action()     {}
func (Settle) action()   {}
func (Launch) action()   {}
func (Ask) action()      {}
func (Flush) action()    {}
func (Measure) action()  {}
func (Stop) action()     {}
func (HandOver) action() {}
func (Wait) action()     {}
func (End) action()      {}
