package gpu

import (
	"context"
	"io"
)

// ServeSampler reads the driver and answers on out until in ends, it is told
// to quit, or ctx is done. It is the whole life of a sampler process.
func ServeSampler(ctx context.Context, in io.Reader, out io.Writer) error { return nil }
