package tune

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"sglaunch/internal/probe/answers"
	"sglaunch/internal/tune/bench"
)

// RecordVersion is the version of the records; a journal of a newer one is
// refused.
const RecordVersion = 1

// Record is one fact of a night. A Night knows nothing but its records.
type Record struct {
	Seq  int // from 1, without gaps
	At   time.Time
	Body Body
}

// Body is the content of a record; the set is sealed.
type Body interface{ body() }

// Planned begins a night, and again each run in which study, facts or trials
// are not those of the newest Planned. Deadline and seed stay those of the first.
type Planned struct {
	Version  int              `json:"version"`
	Study    Study            `json:"study"`
	Facts    Facts            `json:"facts"`
	Trials   []Trial          `json:"trials"`         // the baseline first, then in the order of their launches
	Base     map[string]Value `json:"base,omitempty"` // values of the base on the axes: Study.BaseSettings
	Deadline time.Time        `json:"deadline"`
	Expect   Estimate         `json:"expect"`         // from history, or of the study
	Seed     int64            `json:"seed,omitempty"` // of the order within blocks of fresh launches
}

// Resumed tells that the tuner came back. A launch without an end is
// interrupted: its processes are gone by now, the caller has seen to that. Only
// the launch that was handed over may serve on.
type Resumed struct {
	Serving bool `json:"serving,omitempty"` // it does
}

// Intended is written before anything of a launch is done.
type Intended struct {
	Launch      int    `json:"launch"` // from 1, in the whole night
	Slot        Slot   `json:"slot"`
	Fingerprint string `json:"fingerprint"`
}

// Launched tells that the server's start was begun.
type Launched struct {
	Launch  int      `json:"launch"`
	ID      string   `json:"id"`               // of the sglaunch launch: its folder
	Command []string `json:"command"`          // as started, masked
	Caches  *Caches  `json:"caches,omitempty"` // before it
}

// Ready tells that the server is ready, and what was proven about it.
type Ready struct {
	Launch  int               `json:"launch"`
	Took    time.Duration     `json:"took"`
	Checked string            `json:"checked,omitempty"` // of the output: "ok", "failed"; "" = it was not checked
	Patches map[string]string `json:"patches,omitempty"` // effect by name: effective, partial, ...
	// Differs names arguments that the server resolved otherwise than the
	// trial asks for: "mem_fraction_static is 0.88, not 0.9".
	Differs []string `json:"differs,omitempty"`
}

// Answered is what a ready server answered to the fixed prompts.
type Answered struct {
	Launch int             `json:"launch"`
	Took   time.Duration   `json:"took"`
	Sample *answers.Sample `json:"sample,omitempty"` // nil: there is none
	Undone string          `json:"undone,omitempty"` // why not
	File   string          `json:"file,omitempty"`   // the answers, within the night's folder
	Eval   *Evaluated      `json:"eval,omitempty"`   // nil: it was not run
}

// Evaluated is the word of the study's own command on a server.
type Evaluated struct {
	Status int      `json:"status"`           // of its exit; 0 = sound; below 0: it has none, and says nothing
	Line   string   `json:"line,omitempty"`   // its last, or why it has no status; masked
	Number *float64 `json:"number,omitempty"` // at the end of that line
}

// Flushed tells whether the prefix cache is known to be empty.
type Flushed struct {
	Launch int    `json:"launch"`
	OK     bool   `json:"ok"`
	Text   string `json:"text,omitempty"`
}

// Measuring is written before a bench client is started.
type Measuring struct {
	Launch int   `json:"launch"`
	Point  Point `json:"point"`
}

// Measured is one run of a bench client. Where the client gave no result,
// Problem says why and Result is zero; a server that died has its Ended.
type Measured struct {
	Launch  int           `json:"launch"`
	Point   Point         `json:"point"`
	Began   time.Time     `json:"began,omitzero"`
	Took    time.Duration `json:"took"`
	Result  bench.Result  `json:"result"`
	Window  Window        `json:"window"`
	Problem string        `json:"problem,omitempty"`
	File    string        `json:"file,omitempty"` // raw result, within the night's folder
}

// LeftOut are points at which a launch need not be measured: they cannot change
// that its trial is no candidate.
type LeftOut struct {
	Launch int     `json:"launch"`
	Points []Point `json:"points"`
	Text   string  `json:"text"` // what shows it
}

// PerThousand is how many joules the GPUs used for a thousand tokens of answers; 0
// where that is unknown.
func (m Measured) PerThousand() float64 {
	if m.Result.Generated == 0 {
		return 0
	}
	return m.Window.Joules / float64(m.Result.Generated) * 1000
}

// Ended is the end of a launch, whatever ended it.
type Ended struct {
	Launch     int           `json:"launch"`
	Outcome    string        `json:"outcome"`         // of the vocabulary: stopped, crashed, hung, timed_out, unhealthy, refused
	Cause      string        `json:"cause,omitempty"` // of the vocabulary
	Phase      string        `json:"phase,omitempty"`
	Text       string        `json:"text,omitempty"`       // the words that state the cause, masked
	Excerpt    []string      `json:"excerpt,omitempty"`    // last lines, masked
	Log        string        `json:"log,omitempty"`        // path of the raw log
	Took       time.Duration `json:"took"`                 // from the intent
	Unkillable bool          `json:"unkillable,omitempty"` // a process would not go
	Held       string        `json:"held,omitempty"`       // what holds GPU memory still, though it must be free
	Caches     *Caches       `json:"caches,omitempty"`     // after it
}

// Settled tells how the gate before a launch was passed.
type Settled struct {
	After    int           `json:"after"` // the launch that ended last; 0 = before the first
	OK       bool          `json:"ok"`
	Problem  string        `json:"problem,omitempty"`  // foreign process on GPU 3, port taken by ..., disk full
	Hardware string        `json:"hardware,omitempty"` // new Xid or ECC or remapped rows
	Hot      string        `json:"hot,omitempty"`      // it went on too warm: told, no problem
	Waited   time.Duration `json:"waited,omitempty"`
}

// Skipped is a trial that is not tried, or not tried further.
type Skipped struct {
	Trial    string `json:"trial"`
	Evidence int    `json:"evidence,omitempty"` // the launch that taught it; 0 = none
	Rule     string `json:"rule"`               // dominated, category, quarantined, slower, no-time, ...
	Text     string `json:"text"`
}

// Drifted tells that the baseline itself moved: what was measured between the
// two launches is measured again.
type Drifted struct {
	From   int     `json:"from"` // launches of the baseline
	To     int     `json:"to"`
	Change float64 `json:"change"` // of the score, as a log ratio
}

// Broke ends the trials of a night before its time.
type Broke struct {
	Breaker string `json:"breaker"` // environment, baseline, unkillable, memory, hardware, asked
	Text    string `json:"text"`
}

// Decided is the verdict of a night.
type Decided struct {
	Verdict Verdict `json:"verdict"`
}

// Serving tells that a launch was handed over: it goes on serving.
type Serving struct {
	Launch int    `json:"launch"`
	Trial  string `json:"trial"`
}

// StopAsked tells that a person wants the trials to end. The morning follows.
type StopAsked struct {
	By string `json:"by"`
}

// Done is the last record of a night.
type Done struct {
	Code int    `json:"code"` // exit code
	Text string `json:"text"`
}

func (Planned) body()   {}
func (Resumed) body()   {}
func (Intended) body()  {}
func (Launched) body()  {}
func (Ready) body()     {}
func (Answered) body()  {}
func (Flushed) body()   {}
func (Measuring) body() {}
func (Measured) body()  {}
func (LeftOut) body()   {}
func (Ended) body()     {}
func (Settled) body()   {}
func (Skipped) body()   {}
func (Drifted) body()   {}
func (Broke) body()     {}
func (Decided) body()   {}
func (Serving) body()   {}
func (StopAsked) body() {}
func (Done) body()      {}

// bodies names every body for the journal. A name is never reused.
var bodies = map[string]Body{
	"planned": Planned{}, "resumed": Resumed{}, "intended": Intended{}, "launched": Launched{},
	"ready": Ready{}, "answered": Answered{}, "flushed": Flushed{}, "measuring": Measuring{}, "measured": Measured{},
	"left_out": LeftOut{}, "ended": Ended{}, "settled": Settled{}, "skipped": Skipped{}, "drifted": Drifted{},
	"broke": Broke{}, "decided": Decided{}, "serving": Serving{}, "stop_asked": StopAsked{}, "done": Done{},
}

type recordJSON struct {
	Seq  int             `json:"seq"`
	At   time.Time       `json:"at"`
	Kind string          `json:"record"`
	Body json.RawMessage `json:"body"`
}

// Kind is the record's name in the journal.
func (r Record) Kind() string {
	for name, sample := range bodies {
		if reflect.TypeOf(sample) == reflect.TypeOf(r.Body) {
			return name
		}
	}
	return ""
}

// MarshalJSON writes the record with the name of its body.
func (r Record) MarshalJSON() ([]byte, error) {
	kind := r.Kind()
	if kind == "" {
		return nil, fmt.Errorf("internal error: %T has no name in the journal", r.Body)
	}
	body, err := json.Marshal(r.Body)
	if err != nil {
		return nil, err
	}
	return json.Marshal(recordJSON{r.Seq, r.At, kind, body})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Record) UnmarshalJSON(data []byte) error {
	var in recordJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	sample, ok := bodies[in.Kind]
	if !ok {
		return fmt.Errorf("cannot read record %d: unknown kind %q: written by another version of sglaunch", in.Seq, in.Kind)
	}
	body := reflect.New(reflect.TypeOf(sample))
	if err := json.Unmarshal(in.Body, body.Interface()); err != nil {
		return fmt.Errorf("cannot read record %d (%s): %w", in.Seq, in.Kind, err)
	}
	*r = Record{in.Seq, in.At, body.Elem().Interface().(Body)}
	return nil
}

// Point is one load at one concurrency: what a bench client is run for once.
type Point struct {
	Load        string `json:"load"`
	Concurrency int    `json:"concurrency"`
	Probe       bool   `json:"probe,omitempty"` // the worst case for memory; it is not scored
	Soak        bool   `json:"soak,omitempty"`  // the GPUs are warmed up; nor is this
}

func (p Point) String() string {
	switch {
	case p.Probe:
		return "probe"
	case p.Soak:
		return "warm-up"
	}
	return p.Load + "@" + strconv.Itoa(p.Concurrency)
}

// PointsText names points for a person.
func PointsText(points []Point) string {
	names := make([]string, len(points))
	for i, p := range points {
		names[i] = p.String()
	}
	return strings.Join(names, ", ")
}

// Slot is the place of a launch in the night: what it is made for.
type Slot struct {
	Stage Stage  `json:"stage"`
	Trial string `json:"trial"`
	Round int    `json:"round"` // from 1: the so many-th launch of the trial in this stage
}

// Stage is a part of the night.
type Stage string

// The stages in their order.
const (
	Screen  Stage = "screen"  // every trial once, the baseline between them
	Narrow  Stage = "narrow"  // halving: the best third again
	Confirm Stage = "confirm" // finalists and baseline side by side, in fresh launches
	Morning Stage = "morning" // the launch that is left serving
)

// Window is what was seen beside one run of a bench client. It is recorded by
// the caller; Night judges it. Shares are from 0 to 1; what is unknown is zero.
type Window struct {
	Sampled    float64  `json:"sampled,omitempty"`     // share of the window that samples cover
	Throttled  float64  `json:"throttled,omitempty"`   // by heat, brake or hardware slow-down, of the worst GPU
	PowerCap   float64  `json:"power_cap,omitempty"`   // by the power limit: usual under load, so only compared
	Pressure   float64  `json:"pressure,omitempty"`    // PSI "some", the worst of CPU, memory and disk
	Client     float64  `json:"client,omitempty"`      // CPUs that the client's busiest process used
	Lag        float64  `json:"lag,omitempty"`         // share in which the client would have gone on and had no CPU, or was stopped
	Foreign    []string `json:"foreign,omitempty"`     // processes of others on these GPUs
	Compiling  bool     `json:"compiling,omitempty"`   // kernels were compiled after serving had begun
	ClockMHz   float64  `json:"clock_mhz,omitempty"`   // mean SM clock
	Celsius    float64  `json:"celsius,omitempty"`     // hottest GPU, mean
	Watts      float64  `json:"watts,omitempty"`       // all GPUs, mean
	LimitWatts float64  `json:"limit_watts,omitempty"` // that all GPUs may draw, mean
	Joules     float64  `json:"joules,omitempty"`      // all GPUs by their counters, while requests were under way
	PState     string   `json:"pstate,omitempty"`      // the slowest of any GPU that worked: P0, ...
	Hardware   string   `json:"hardware,omitempty"`    // new Xid or ECC or remapped rows
	Emptied    bool     `json:"emptied,omitempty"`     // the prefix cache was emptied before it
	Opening    *Opening `json:"opening,omitempty"`     // how the server got the first prompts; nil: it does not say
}
