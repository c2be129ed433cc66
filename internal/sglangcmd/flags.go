package sglangcmd

import (
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
	return value, ok
}

// Has tells whether a flag that takes no value is given.
func (c Command) Has(names ...string) bool {
	for _, arg := range c.Args {
		for _, name := range names {
			if arg == name {
				return true
			}
		}
	}
	return false
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
// where a flag is absent.
type Server struct {
	Model       string // --model-path; "" where the command does not tell
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
}

// Server reads the flags.
func (c Command) Server() Server {
	s := Server{
		TP:          c.Int(1, "--tp-size", "--tp", "--tensor-parallel-size"),
		PP:          c.Int(1, "--pp-size", "--pp", "--pipeline-parallel-size"),
		DP:          c.Int(1, "--dp-size", "--dp", "--data-parallel-size"),
		DPAttention: c.Has("--enable-dp-attention"),
		Nodes:       c.Int(1, "--nnodes"),
		NodeRank:    c.Int(0, "--node-rank"),
		Host:        "127.0.0.1",
		Port:        c.Int(30000, "--port"),
		NCCLPort:    c.Int(0, "--nccl-port"),
		BaseGPU:     c.Int(0, "--base-gpu-id"),
		GPUStep:     c.Int(1, "--gpu-id-step"),
	}
	if host, ok := c.Value("--host"); ok {
		s.Host = host
	}
	s.DistInit, _ = c.Value("--dist-init-addr", "--nccl-init-addr")
	s.APIKey, _ = c.Value("--api-key")
	s.Model = c.model()
	return s
}

// model is the flag, or what sglang serve takes as its first argument.
func (c Command) model() string {
	if v, ok := c.Value("--model-path", "--model"); ok {
		return v
	}
	if c.Form == Serve && len(c.Args) > 0 && !strings.HasPrefix(c.Args[0], "-") {
		return c.Args[0]
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
	return max(1, n/max(1, s.Nodes))
}
