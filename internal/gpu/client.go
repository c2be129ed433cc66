package gpu

import (
	"context"
	"time"
)

// Options of a Client.
type Options struct {
	Argv     []string      // the command that runs ServeSampler on its standard input and output
	Env      []string      // its environment; nil = ours
	Interval time.Duration // between two samples; 0 = 1 s
	Hang     time.Duration // the driver is hanging when it answers so much later than it should; 0 = 10 s
	Grace    time.Duration // of Close: for a sampler to end, before and again after SIGTERM; 0 = 5 s
}

// Client is the Source that owns a sampler process.
type Client struct{ box *mailbox }

// Start starts the sampler. It returns at once; that it could not be started
// is news like any other.
func Start(o Options) *Client { return nil }

// Events gives the news.
func (c *Client) Events() <-chan Event { return c.box.out }

// Pace changes the time between two samples.
func (c *Client) Pace(interval time.Duration) {}

// Snapshot asks for a sample with process lists.
func (c *Client) Snapshot(ctx context.Context) (Sample, error) { return Sample{}, nil }

// Close ends the sampler: its input is closed, then it gets SIGTERM, never
// SIGKILL.
func (c *Client) Close() error { return nil }
