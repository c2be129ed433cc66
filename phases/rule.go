package phases

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// RuleKind says what a line that a rule matches means.
type RuleKind string

// The kinds of rules.
const (
	RuleStart    RuleKind = "start"    // a launch begins here; a second one is a new attempt
	RuleEnter    RuleKind = "enter"    // the rank is now in Phase
	RuleProgress RuleKind = "progress" // a counter: groups done and total, Unit
	RuleReady    RuleKind = "ready"    // the server is ready
	RuleWork     RuleKind = "work"     // a batch ran: warm-up before ready, serving after it
	RuleDrain    RuleKind = "drain"    // an orderly shutdown has begun
	RuleActivity RuleKind = "activity" // Activity runs inside the phase
	RuleFrame    RuleKind = "frame"    // a traceback frame that tells the phase, or what an exception raised there means
	RuleFault    RuleKind = "fault"    // a failure-indicating line
	RuleNote     RuleKind = "note"     // worth telling, never a failure
	RuleNoise    RuleKind = "noise"    // looks bad, is harmless: no fault rule sees the line
)

var ruleKinds = []RuleKind{
	RuleStart, RuleEnter, RuleProgress, RuleReady, RuleWork, RuleDrain, RuleActivity, RuleFrame, RuleFault, RuleNote, RuleNoise,
}

// Severity says what a fault rule's line proves.
type Severity string

// The severities, strongest statement of the cause first. None of them raises a
// failure while the server lives on: that takes a rule that is also Certain, or
// output that ends with the fault.
const (
	SeverityDetail  Severity = "detail"  // the words that state the cause best, inside a larger failure
	SeverityFault   Severity = "fault"   // names a cause
	SeverityWrapper Severity = "wrapper" // wraps another error; the cause only where nothing better stands beside it
	SeverityEcho    Severity = "echo"    // a consequence of a failure elsewhere
	SeverityMarker  Severity = "marker"  // proves that something failed, says nothing of why
	SeverityClue    Severity = "clue"    // explains a failure or a standstill, never is one
)

var severities = []Severity{SeverityDetail, SeverityFault, SeverityWrapper, SeverityEcho, SeverityMarker, SeverityClue}

// minLiteral is the shortest literal a rule may have. Those below longLiteral
// are only looked for in short messages, where they are enough to know a line.
const (
	minLiteral   = 6
	longLiteral  = 8
	wideLiteral  = 9 // from here on, long samples tell them apart
	shortMessage = 64
)

// A Rule gives lines their meaning. Rules are data: they come from the built-in
// TOML files, a user's own file or launch.toml, all in the same form.
//
// Lit must stand in the line, byte for byte; Re, where given, must then match
// the message (the line without time, rank, colours and outer prefixes). Named
// groups of Re are picked up: text (the telling part), done and total (a
// counter), name (what tells two counters of one rule apart), key (see Times),
// and n_NAME (a number for the report).
type Rule struct {
	ID       string   `toml:"id" json:"id"` // kebab-case, area first; never reused, never renamed
	Kind     RuleKind `toml:"kind" json:"kind"`
	Phase    *Phase   `toml:"phase" json:"phase,omitempty"` // entered; of a fault or a note, what its line implies where nothing else is known
	Lit      string   `toml:"lit" json:"lit"`
	Re       string   `toml:"re" json:"re,omitempty"`
	Since    string   `toml:"since" json:"since,omitempty"`   // first SGLang release that prints it; "" is unknown
	Until    string   `toml:"until" json:"until,omitempty"`   // last one; "" is still printed
	Source   string   `toml:"source" json:"source,omitempty"` // what stands in the source, where Lit is put together at run time
	From     string   `toml:"from" json:"from,omitempty"`     // who prints it, where that is not SGLang: torch, nccl, driver, ...
	Unit     string   `toml:"unit" json:"unit,omitempty"`
	Activity string   `toml:"activity" json:"activity,omitempty"`

	Severity  Severity          `toml:"severity" json:"severity,omitempty"`
	Certain   bool              `toml:"certain" json:"certain,omitempty"` // the line itself proves that the launch or the server failed
	Cause     string            `toml:"cause" json:"cause,omitempty"`
	ByPhase   map[string]string `toml:"by_phase" json:"by_phase,omitempty"`     // cause by the phase of the rank, where it differs
	DependsOn []string          `toml:"depends_on" json:"depends_on,omitempty"` // ids; where one of them was seen, this fault is its echo
	Times     int               `toml:"times" json:"times,omitempty"`           // fires once the group key has been seen so often
	Expected  bool              `toml:"expected" json:"expected,omitempty"`     // every start prints it: told as drift where it is absent

	Raises []string `toml:"raises" json:"raises,omitempty"` // of a frame with a cause: the classes that code there raises on purpose

	Handled bool `toml:"handled" json:"handled,omitempty"` // of a note: the traceback that follows was handled

	Why    string   `toml:"why" json:"why,omitempty"`
	Hits   []string `toml:"hits" json:"hits,omitempty"`     // real lines that must match
	Misses []string `toml:"misses" json:"misses,omitempty"` // near ones that must not

	File string `toml:"-" json:"file,omitempty"` // where the rule was read

	compiled *pattern
}

// A pattern is a rule's expression, compiled on first use: most launches need
// few of them.
type pattern struct {
	once sync.Once
	re   *regexp.Regexp
	need need
	err  error
}

// prepare makes a rule ready to be shared by trackers.
func (r *Rule) prepare() {
	if r.compiled == nil {
		r.compiled = new(pattern)
	}
}

// pattern is the compiled Re, nil where there is none.
func (r *Rule) pattern() (*regexp.Regexp, error) {
	r.prepare()
	c := r.compiled
	c.once.Do(func() {
		if r.Re != "" {
			c.re, c.err = regexp.Compile(r.Re)
			c.need = needOf(r.Re)
		}
	})
	return c.re, c.err
}

// match tells whether the rule fits a message, and where its groups lie.
func (r *Rule) match(msg []byte) (groups []int, ok bool) {
	re, err := r.pattern()
	if err != nil {
		return nil, false
	}
	if re == nil {
		return nil, true
	}
	if !r.compiled.need.met(msg) {
		return nil, false
	}
	groups = re.FindSubmatchIndex(msg)
	return groups, groups != nil
}

// group returns a named group of a match, or nil.
func (r *Rule) group(msg []byte, groups []int, name string) []byte {
	re, _ := r.pattern()
	if re == nil || groups == nil {
		return nil
	}
	i := re.SubexpIndex(name)
	if i < 0 || groups[2*i] < 0 {
		return nil
	}
	return msg[groups[2*i]:groups[2*i+1]]
}

// causeIn is the cause of a fault met in a phase; known is false where the
// output shows neither a start nor a frame that tells the phase.
func (r *Rule) causeIn(p Phase, known bool) string {
	if c, ok := r.ByPhase[p.String()]; ok && known {
		return c
	}
	return r.Cause
}

var idPattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9.]+)*$`)

// Validate checks all that can be wrong with a rule from outside. The error names
// the rule.
func (r *Rule) Validate() error {
	if r.ID == "" {
		return errors.New("cannot use a rule: it has no id")
	}
	if !idPattern.MatchString(r.ID) {
		return fmt.Errorf("cannot use %q as a rule id: want lower-case words joined by dashes", r.ID)
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("cannot use rule %q: %s", r.ID, fmt.Sprintf(format, args...))
	}
	if !slices.Contains(ruleKinds, r.Kind) {
		return bad("unknown kind %q, known are %v", r.Kind, ruleKinds)
	}
	if len(r.Lit) < minLiteral {
		return bad("the literal %q is shorter than %d bytes", r.Lit, minLiteral)
	}
	if strings.ContainsAny(r.Lit, "\r\n\x00") {
		return bad("the literal %q holds a line end", r.Lit)
	}
	if _, err := r.pattern(); err != nil {
		return bad("%v", err)
	}
	return r.validateMeaning(bad)
}

func (r *Rule) validateMeaning(bad func(string, ...any) error) error {
	switch r.Kind {
	case RuleEnter:
		if r.Phase == nil {
			return bad("kind %q needs a phase", r.Kind)
		}
	case RuleFrame:
		if r.Phase == nil && r.Cause == "" {
			return bad("kind %q needs a phase or a cause", r.Kind)
		}
		if (r.Cause == "") != (len(r.Raises) == 0) {
			return bad("a frame's cause needs the classes that it is the cause of (raises), and they a cause")
		}
	case RuleActivity:
		if r.Activity == "" {
			return bad("kind %q needs an activity", r.Kind)
		}
	case RuleFault:
		if !slices.Contains(severities, r.Severity) {
			return bad("unknown severity %q, known are %v", r.Severity, severities)
		}
	}
	if _, ok := LookupCause(r.Cause); r.Cause != "" && !ok {
		return bad("unknown cause %q", r.Cause)
	}
	for phase, cause := range r.ByPhase {
		if _, err := ParsePhase(phase); err != nil {
			return bad("by_phase: %v", err)
		}
		if _, ok := LookupCause(cause); !ok {
			return bad("by_phase: unknown cause %q", cause)
		}
	}
	return nil
}
