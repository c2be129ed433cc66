package probe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"sglaunch/internal/probe/answers"
)

// Check is the size of an output check.
type Check struct {
	Generations int
	Tokens      int           // of each, at most
	BatchSizes  []int         // how many are asked for at a time, in turn
	Limit       time.Duration // of the whole
}

// Batches are the sizes of the requests, one after the other: each size in
// turn, so that all have been seen early on.
func (c Check) Batches() []int {
	var all []int
	for left := c.Generations; left > 0; {
		n := 1
		if len(c.BatchSizes) > 0 {
			n = max(1, c.BatchSizes[len(all)%len(c.BatchSizes)])
		}
		n = min(n, left)
		all = append(all, n)
		left -= n
	}
	return all
}

// Heard is what a server answered to an output check.
type Heard struct {
	Answers []answers.Answer
	Tokens  int // that each might have at most: as asked for, or what the model has room for
	// Undone says why the check could not be done or not to its end; "" = it
	// was. It is never the proof of a fault.
	Undone string
	// Silent: no answer came within the limit, though the server took the
	// request.
	Silent bool
}

// leastTokens is how short an answer may be that still shows something.
const leastTokens = 16

// promptRoom is what a prompt of ours takes of the model's context.
const promptRoom = 512

// Ask asks the server for greedy generations, one batch after the other; no
// other probe is in flight meanwhile. each is told how many answers there are
// after every batch. It returns within the check's limit.
func (p *Prober) Ask(ctx context.Context, c Check, each func(answers int)) Heard {
	h := Heard{Tokens: c.Tokens}
	switch {
	case p.bad != nil:
		h.Undone = p.bad.Error()
	case p.options.NoGenerate != "":
		h.Undone = p.options.NoGenerate
	case p.options.Follower:
		h.Undone = "a node that is not the first takes no requests"
	}
	if h.Undone != "" {
		return h
	}
	ctx, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		h.Undone = "another probe has not ended"
		return h
	}
	g, err := p.generator(ctx, &h)
	prompts := answers.Prompts(c.Generations)
	for _, n := range c.Batches() {
		if err != nil {
			break
		}
		var said []answers.Answer
		if said, err = g.generate(ctx, prompts[:n], h.Tokens); err == nil {
			h.Answers, prompts = append(h.Answers, said...), prompts[n:]
			each(len(h.Answers))
		}
	}
	if err != nil {
		h.Undone = p.unanswered(ctx, err, c.Limit)
		h.Silent = len(h.Answers) == 0 && g != nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
	}
	return h
}

func (p *Prober) unanswered(ctx context.Context, err error, limit time.Duration) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Sprintf("it took longer than %v", limit)
	}
	return p.reason(ctx, err)
}

// generator finds out what the server is and how it is asked.
func (p *Prober) generator(ctx context.Context, h *Heard) (*generator, error) {
	if generates, known := p.generates(ctx); known && !generates {
		return nil, errors.New(noGeneration)
	}
	info := p.info(ctx)
	if why := routed(info.Disaggregation); why != "" {
		return nil, errors.New(why)
	}
	g := &generator{prober: p, logprobs: !p.options.Speculates && !info.speculates()}
	var models struct {
		Data []struct {
			ID     string `json:"id"`
			MaxLen int    `json:"max_model_len"`
		} `json:"data"`
	}
	if err := p.fetch(ctx, "/v1/models", &models); err == nil && len(models.Data) > 0 {
		g.model = models.Data[0].ID
		if room := models.Data[0].MaxLen; room > 0 {
			h.Tokens = min(h.Tokens, room-promptRoom)
		}
	}
	if h.Tokens < leastTokens {
		return nil, fmt.Errorf("the model has room for %d tokens only", h.Tokens+promptRoom)
	}
	return g, ctx.Err()
}

// generates asks whether the model generates at all. No scheduler is asked.
func (p *Prober) generates(ctx context.Context) (yes, known bool) {
	for _, path := range []string{"/model_info", "/get_model_info"} {
		var info struct {
			Generates *bool `json:"is_generation"`
		}
		if p.fetch(ctx, path, &info) == nil {
			return info.Generates == nil || *info.Generates, info.Generates != nil
		}
	}
	return false, false
}

// fetch reads one JSON document of the server's.
func (p *Prober) fetch(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, infoLimit)
	defer cancel()
	response, err := p.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return decode(response, path, maxBody, into)
}
