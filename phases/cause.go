package phases

// Retry says whether an unchanged relaunch helps.
type Retry string

// Cure says who or what helps.
type Cure string

// The values of Retry and Cure.
const (
	RetryYes   Retry = "yes"
	RetryNo    Retry = "no"
	RetryMaybe Retry = "maybe"

	CureRelaunch Cure = "relaunch" // try again as it was
	CureChange   Cure = "change"   // a rung of the ladder, or a person, changes something
	CureWait     Cure = "wait"     // a resource comes back
	CurePerson   Cure = "person"   // no relaunch helps
)

// Cause is one entry of the catalogue of root causes. Names are an interface.
type Cause struct {
	Name   string
	Group  string // memory, compile, communication, hardware, files, configuration, environment, processes, patch, ""
	Retry  Retry
	Cure   Cure
	Remedy string // one sentence: what to do
}
