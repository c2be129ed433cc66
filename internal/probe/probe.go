package probe

import (
	"context"
	"time"
)

// Answer is what one probe saw.
type Answer struct {
	At       time.Time
	Took     time.Duration
	Endpoint string // path asked last
	Status   int    // HTTP status; 0 where there was none
	Refused  bool   // nobody listens: the HTTP server is not up
	Err      string // why there is no status; "" with one

	Serving Serving
}

// Serving is what the answer means, read with what the endpoint is known to do.
type Serving string

// The values of Serving.
const (
	Down     Serving = "down"     // nobody listens
	Starting Serving = "starting" // HTTP is up, the server says it is not ready
	Early    Serving = "early"    // a 200 that this endpoint gives before the server is ready
	Up       Serving = "up"       // a 200 that proves that the server is ready
	Unclear  Serving = "unclear"  // no answer in time, or one that proves nothing
)

// Options of a Prober.
type Options struct {
	URL      string        // of the server: http://127.0.0.1:30000
	APIKey   string        // sent as a bearer token, never shown
	Follower bool          // of several nodes, not the first: /health is static there
	Version  string        // of SGLang, "" where unknown
	Limit    time.Duration // of one probe; 0 = 25 s, above the server's own 20
}

// Prober probes one server.
type Prober struct{ options Options }

// New returns a prober.
func New(o Options) *Prober { return &Prober{options: o} }

// Probe asks once. Two calls at a time wait for one another, so that there is
// never more than one probe in flight.
func (p *Prober) Probe(ctx context.Context) Answer { return Answer{} }
