package tune

import (
	"fmt"

	"sglaunch/internal/tune/stat"
)

// Verdict is what a night found.
type Verdict struct {
	Winner   string    `json:"winner,omitempty"`   // trial; "" = no significant winner
	Findings []Finding `json:"findings,omitempty"` // of the finalists, best first
	Noise    float64   `json:"noise,omitempty"`    // standard deviation of the log score between launches of one configuration
	Trend    float64   `json:"trend,omitempty"`    // of the baseline over the night, as a log ratio; 0 = none that is significant
	Text     string    `json:"text"`               // one sentence
}

// Finding is what the fresh launches of a finalist show.
type Finding struct {
	Trial string        `json:"trial"`
	Ratio stat.Interval `json:"ratio"` // to the baseline beside it; 1.05 = 5 % better, whatever the metric
	Pairs int           `json:"pairs"`
	Won   bool          `json:"won,omitempty"`  // the whole interval is above the minimum effect
	Text  string        `json:"text,omitempty"` // why not
}

// signed writes a ratio as a change: "+5.1 %".
func signed(ratio float64) string { return fmt.Sprintf("%+.1f %%", 100*(ratio-1)) }
