package bench

// Result is one run of a bench client against one server.
type Result struct {
	Format    string             `json:"format"`              // in which it was written
	Requested int                `json:"requested,omitempty"` // requests that were asked for; 0 = unknown
	Completed int                `json:"completed"`
	Failed    int                `json:"failed,omitempty"`
	Seconds   float64            `json:"seconds,omitempty"`   // of the run, by the client's clock
	Generated int                `json:"generated,omitempty"` // tokens of all answers; 0 = unknown
	Metrics   map[string]float64 `json:"metrics,omitempty"`   // finite ones, by their one name: see Metrics
	Error     string             `json:"error,omitempty"`     // the first that a request met
	Server    map[string]string  `json:"server,omitempty"`    // the server's own arguments, as it told the client
	Notes     []string           `json:"notes,omitempty"`     // what a person should know: the table disagrees, a figure is missing
}
