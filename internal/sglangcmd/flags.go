package sglangcmd

import (
	"slices"
	"strconv"
	"strings"
)

// Value returns what a flag was given, under any of its names: the last one
// counts, as it does for argparse. Both --flag value and --flag=value are read.
func (c Command) Value(names ...string) (value string, ok bool) {
	for i, arg := range c.Args {
		for _, name := range names {
			if rest, found := strings.CutPrefix(arg, name+"="); found {
				value, ok = rest, true
			}
			if arg == name && i+1 < len(c.Args) {
				value, ok = c.Args[i+1], true
			}
		}
	}
	if strings.Contains(value, unreadable) {
		return "", false
	}
	return value, ok
}

// Values returns all that a flag with a list of values was given.
func (c Command) Values(names ...string) []string {
	var values []string
	for i, arg := range c.Args {
		if !slices.Contains(names, arg) {
			continue
		}
		values = nil
		for _, v := range c.Args[i+1:] {
			if strings.HasPrefix(v, "--") {
				break
			}
			values = append(values, v)
		}
	}
	return values
}

// Has tells whether a flag that takes no value is given.
func (c Command) Has(names ...string) bool {
	return slices.ContainsFunc(c.Args, func(arg string) bool { return slices.Contains(names, arg) })
}

// Int returns a flag's number, or otherwise where it is absent or no number.
func (c Command) Int(otherwise int, names ...string) int {
	if v, ok := c.Value(names...); ok {
		if n, err := strconv.Atoi(v); err == nil {
			return n
		}
	}
	return otherwise
}

// Server is what an SGLang server was asked for, with SGLang's own defaults
// where a flag is absent. Sizes are at least 1.
type Server struct {
	Model       string // --model-path; "" where the command does not tell
	Draft       string // the draft model of speculative decoding
	TP, PP, DP  int
	DPAttention bool
	Nodes       int
	NodeRank    int
	Host        string
	Port        int
	NCCLPort    int    // 0 = chosen by SGLang
	DistInit    string // host:port, "" where absent
	BaseGPU     int
	GPUStep     int
	APIKey      string // a secret: never print it
	SkipWarmup  bool
	Device      string // cuda, cpu, …; "" = found by SGLang
}

// Server reads the flags.
func (c Command) Server() Server {
	s := Server{
		Model:       c.model(),
		TP:          c.size("--tp-size", "--tp", "--tensor-parallel-size"),
		PP:          c.size("--pp-size", "--pp", "--pipeline-parallel-size"),
		DP:          c.size("--dp-size", "--dp", "--data-parallel-size"),
		DPAttention: c.Has("--enable-dp-attention"),
		Nodes:       c.size("--nnodes"),
		NodeRank:    c.Int(0, "--node-rank"),
		Host:        "127.0.0.1",
		Port:        c.Int(30000, "--port"),
		NCCLPort:    c.Int(0, "--nccl-port"),
		BaseGPU:     c.Int(0, "--base-gpu-id"),
		GPUStep:     c.size("--gpu-id-step"),
		SkipWarmup:  c.Has("--skip-server-warmup"),
	}
	if host, ok := c.Value("--host"); ok {
		s.Host = host
	}
	s.Draft, _ = c.Value("--speculative-draft-model-path", "--speculative-draft-model")
	s.DistInit, _ = c.Value("--dist-init-addr", "--nccl-init-addr")
	s.APIKey, _ = c.Value("--api-key")
	s.Device, _ = c.Value("--device")
	return s
}

// size reads a number of ranks or nodes; the bound keeps products of them right.
func (c Command) size(names ...string) int { return min(max(1, c.Int(1, names...)), 1<<16) }

// model is the flag, or what sglang serve takes as its first argument.
func (c Command) model() string {
	if v, ok := c.Value("--model-path", "--model"); ok {
		return v
	}
	if c.Form == Serve && !strings.Contains(c.positional, unreadable) {
		return c.positional
	}
	return ""
}

// GPUs is how many GPUs the server takes on this node. With DP attention the
// data-parallel ranks share the tensor-parallel ones; otherwise each has its own.
func (s Server) GPUs() int {
	n := s.TP * s.PP
	if !s.DPAttention {
		n *= s.DP
	}
	return max(1, n/s.Nodes)
}
