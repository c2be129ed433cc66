package phases

import (
	"bytes"
	"encoding/json"
	"time"
)

// Report is what a stretch of output tells as a whole: the answer of
// `sglaunch explain --json`. Unknown is absent or null, never invented.
type Report struct {
	Phase        Phase              `json:"phase"`
	Ready        bool               `json:"ready"`  // the ready moment was reached in the last attempt
	Failed       bool               `json:"failed"` // the output shows that the launch or the server failed
	Cause        *string            `json:"cause"`
	Confidence   string             `json:"confidence,omitempty"` // high, medium, low; where there is a cause
	Root         *Evidence          `json:"root"`
	Retry        Retry              `json:"retry,omitempty"`
	Cure         Cure               `json:"cure,omitempty"`
	Remedy       string             `json:"remedy,omitempty"`
	Echoes       []Evidence         `json:"echoes,omitempty"` // at most 50
	EchoesTotal  int                `json:"echoes_total,omitempty"`
	Ranks        map[string]Phase   `json:"ranks"`
	Lagging      []string           `json:"lagging,omitempty"`
	Progress     *Progress          `json:"progress,omitempty"`
	LastProgress *Mark              `json:"last_progress,omitempty"`
	Phases       []Span             `json:"phases"`
	Numbers      map[string]float64 `json:"numbers,omitempty"`
	Activities   []string           `json:"activities,omitempty"`
	Attempts     int                `json:"attempts,omitempty"` // where there were several; all else is of the last
	Earlier      []Earlier          `json:"earlier,omitempty"`  // the last 50 attempts before, the oldest first
	Drained      bool               `json:"drained,omitempty"`  // an orderly shutdown was asked for
	Drift        []string           `json:"drift,omitempty"`    // expected rules that never matched although it got ready
	Lines        int                `json:"lines"`
	Cut          string             `json:"cut,omitempty"` // why what follows could not be read
}

// Recognised tells whether any line told something of an SGLang server. Where
// none did there is no phase, although Phase must hold one.
func (r Report) Recognised() bool {
	return len(r.Phases) > 0 || r.Failed || r.Cause != nil || r.Phase != Starting
}

// MarshalJSON writes no phase where nothing was recognised.
func (r Report) MarshalJSON() ([]byte, error) {
	type plain Report
	shown := struct {
		Phase *Phase `json:"phase"`
		plain
	}{&r.Phase, plain(r)}
	if !r.Recognised() {
		shown.Phase, shown.Ranks = nil, map[string]Phase{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(shown)
	return b.Bytes(), err
}

// Evidence is a line that states something: its number from 1, its rank, and
// the telling part of its text.
type Evidence struct {
	Line int        `json:"line"`
	Rank string     `json:"rank"`
	Text string     `json:"text"`
	Time *Timestamp `json:"time,omitempty"`
}

// Progress is the last counter that moved.
type Progress struct {
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Unit  string `json:"unit,omitempty"` // shards, graphs, profiles, bytes, files, ...
	Name  string `json:"name,omitempty"` // what the bar says it counts
}

// Mark is a place in the output.
type Mark struct {
	Line int        `json:"line"`
	Time *Timestamp `json:"time"`
}

// Span is one phase of the launch. Begin and End are null where no line told
// the time.
type Span struct {
	Name    Phase      `json:"name"`
	Begin   *Timestamp `json:"begin"`
	End     *Timestamp `json:"end"`
	Seconds *float64   `json:"seconds"`
}

// Earlier is an attempt that another followed in the same output.
type Earlier struct {
	Phase  Phase     `json:"phase"`
	Ready  bool      `json:"ready"`
	Failed bool      `json:"failed"`
	Cause  *string   `json:"cause"`
	Root   *Evidence `json:"root"`
	Lines  int       `json:"lines"` // number of the last line of it
}

// Timestamp is a time as the output prints it: a wall clock without a zone.
type Timestamp time.Time

const stampLayout = "2006-01-02T15:04:05"

// MarshalJSON writes the wall clock, with milliseconds where they were printed.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	layout := stampLayout
	if time.Time(t).Nanosecond() != 0 {
		layout += ".000"
	}
	return json.Marshal(time.Time(t).Format(layout))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Timestamp) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	parsed, err := time.Parse(stampLayout, text)
	*t = Timestamp(parsed)
	return err
}

func timestamp(t time.Time) *Timestamp {
	if t.IsZero() {
		return nil
	}
	s := Timestamp(t)
	return &s
}

// enter begins a span of a phase and ends the one before.
func (n *node) enter(p Phase, printed []byte) {
	if len(n.spans) > 0 {
		last := &n.spans[len(n.spans)-1]
		if last.Name == p {
			return
		}
		last.end(parseStamp(printed))
	}
	n.spans = append(n.spans, Span{Name: p, Begin: timestamp(parseStamp(printed))})
}

func (s *Span) end(at time.Time) {
	s.End = timestamp(at)
	if s.Begin != nil && s.End != nil {
		if d := at.Sub(time.Time(*s.Begin)).Seconds(); d >= 0 {
			s.Seconds = &d
		}
	}
}
