package serve

import "time"

// Version is that of every document here. Fields are only ever added.
const Version = 1

// Envelope is the form of every JSON document of a launch: news, records, what
// hooks get. Text is for a person, and masked; Fields depend on the event.
type Envelope struct {
	V       int            `json:"v"`
	Time    time.Time      `json:"time"`
	Launch  string         `json:"launch"`
	Attempt int            `json:"attempt"`
	Event   string         `json:"event"`
	Text    string         `json:"text,omitempty"`
	Fields  map[string]any `json:"fields,omitempty"`
}

// Word is a field that is text; "" where there is none of that name.
func (e Envelope) Word(name string) string {
	s, _ := e.Fields[name].(string)
	return s
}

// Number is a field that is a number, as the machine gives it or as JSON has kept
// it; 0 where there is none of that name.
func (e Envelope) Number(name string) float64 {
	switch n := e.Fields[name].(type) {
	case int:
		return float64(n)
	case float64:
		return n
	}
	return 0
}

// Event names of this package, beside those of the launch itself.
const (
	EventStatus   = "status"   // a Status
	EventAccepted = "accepted" // what was asked for has begun
	EventRefused  = "refused"  // it has not; the text says why
	EventLost     = "source_lost"
)

// States that a launch cannot tell itself; the others are those of the
// supervisor's machine.
const (
	StateBlind  = "blind"  // the shim keeps the server, no supervisor lives
	StateSilent = "silent" // the supervisor lives and does not answer
	StateDead   = "dead"   // sglaunch died without tidying up
	StateEnded  = "ended"
)

// Status is a launch at one moment. What is not known is absent.
type Status struct {
	V       int       `json:"v"`
	Time    time.Time `json:"time"`
	Launch  string    `json:"launch"`
	Attempt int       `json:"attempt"`
	Event   string    `json:"event"` // always EventStatus

	ID      string    `json:"id,omitempty"` // of the launch: its folder
	Dir     string    `json:"dir,omitempty"`
	Command []string  `json:"command,omitempty"` // secrets masked
	Began   time.Time `json:"began,omitzero"`
	State   string    `json:"state"`
	Since   time.Time `json:"since,omitzero"` // of the attempt's server
	Text    string    `json:"text,omitempty"` // the newest word to a person

	Phase      string            `json:"phase,omitempty"` // of the slowest rank
	PhaseSince time.Time         `json:"phase_since,omitzero"`
	Ranks      map[string]string `json:"ranks,omitempty"` // each rank's phase
	Lagging    []string          `json:"lagging,omitempty"`
	Activities []string          `json:"activities,omitempty"` // jit_compile, download, ...
	Progress   *Progress         `json:"progress,omitempty"`
	Moved      *Moved            `json:"last_progress,omitempty"`
	Left       *Left             `json:"left,omitempty"`

	Ready      bool      `json:"ready"` // the server said so, and its end has not begun
	ReadySince time.Time `json:"ready_since,omitzero"`
	Announced  bool      `json:"announced"` // systemd and hooks were told
	// OutputCheck is the look at the answers between ready and announced.
	OutputCheck *OutputCheck `json:"output_check,omitempty"`
	Degraded    []string     `json:"degraded,omitempty"`

	// Verdict is what sglaunch would act on, were it allowed to.
	Verdict string `json:"verdict,omitempty"`

	Next   *Next    `json:"next,omitempty"`   // the attempt that follows
	Failed *Failure `json:"failed,omitempty"` // how the newest failed attempt went
	Stop   *Stop    `json:"stop,omitempty"`   // the end was asked for
	Exit   *Exit    `json:"exit,omitempty"`   // the launch has ended

	GPUs      []GPU     `json:"gpus,omitempty"`
	Processes Processes `json:"processes"`

	PhaseSeconds map[string]float64 `json:"phase_seconds,omitempty"` // of the phases of this attempt that are over
	Failures     map[string]int     `json:"failures,omitempty"`      // attempts of this launch that failed, by cause
	Output       Output             `json:"output,omitzero"`
	Silent       []string           `json:"silent,omitempty"`   // sources that tell nothing at the moment, with the reason
	Restarts     int                `json:"restarts,omitempty"` // of the supervisor
	HTTP         string             `json:"http,omitempty"`     // where status and metrics are served
}

// Output counts what the server has printed in this launch, and what became of
// records about it.
type Output struct {
	Bytes   int64 `json:"bytes,omitempty"`
	Lost    int64 `json:"lost,omitempty"`    // bytes that neither memory nor disk could hold
	Dropped int64 `json:"dropped,omitempty"` // records that the disk did not take in time
}

// OutputCheck is how far the look at the answers is, or what it has found.
type OutputCheck struct {
	State  string `json:"state"`            // running, or the result: passed, partial, not_done, corrupt, off
	Done   int    `json:"done,omitempty"`   // answers so far
	Of     int    `json:"of,omitempty"`     // that are asked for
	Reason string `json:"reason,omitempty"` // why not all were given, or why they are wrong
}

// CheckRunning is the state of a check that goes on.
const CheckRunning = "running"

// Progress is a counter of the phase.
type Progress struct {
	Done  int64  `json:"done"`
	Total int64  `json:"total,omitempty"`
	Unit  string `json:"unit,omitempty"`
}

// Moved is the newest proof of progress.
type Moved struct {
	Time time.Time `json:"time"`
	By   string    `json:"by,omitempty"`
}

// Left is how long it should still take until the server is ready, from what
// earlier starts took.
type Left struct {
	Seconds float64 `json:"seconds"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Overdue bool    `json:"overdue,omitempty"` // it takes longer than ever: the rest is 0
}

// Next is when the next attempt begins, and why there is one.
type Next struct {
	Time   time.Time `json:"time"`
	Reason string    `json:"reason"`
}

// Failure is how an attempt ended, in the words of the vocabulary.
type Failure struct {
	Attempt int    `json:"attempt"`
	Outcome string `json:"outcome"`
	Cause   string `json:"cause,omitempty"`
	Phase   string `json:"phase,omitempty"`
	Text    string `json:"text,omitempty"`
}

// Stop says who asked for the end.
type Stop struct {
	By string `json:"by"`
}

// Exit is how a launch ended.
type Exit struct {
	Time   time.Time `json:"time"`
	Code   int       `json:"code"`
	Reason string    `json:"reason,omitempty"`
}

// GPU is one of the launch's GPUs. Nil is unknown.
type GPU struct {
	Index   int      `json:"index"`
	UUID    string   `json:"uuid,omitempty"`
	Name    string   `json:"name,omitempty"`
	Used    *int64   `json:"used,omitempty"`     // bytes
	Total   *int64   `json:"total,omitempty"`    // bytes
	Util    *int64   `json:"util,omitempty"`     // percent of the time that a kernel ran
	MemUtil *int64   `json:"mem_util,omitempty"` // percent of the time that memory was moved
	Watts   *float64 `json:"watts,omitempty"`
	Lost    bool     `json:"lost,omitempty"`
}

// Processes are the three of a launch; 0 is none.
type Processes struct {
	Shim       int `json:"shim"`
	Supervisor int `json:"supervisor"`
	Server     int `json:"server"`
	Members    int `json:"members,omitempty"` // of the attempt, the server included
}
