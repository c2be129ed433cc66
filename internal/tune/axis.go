package tune

import "strings"

// Monotones say what a larger value of an axis takes more of. A failure for
// want of it then tells about every larger value, all else equal.
const (
	MemoryUp   = "memory-up"   // of the GPU's memory, for weights and KV pool together: --mem-fraction-static
	MemoryDown = "memory-down" // less of it: --cpu-offload-gb
	GraphUp    = "graph-up"    // of memory while graphs are captured: --cuda-graph-max-bs
	LoadUp     = "load-up"     // of memory under load: --chunked-prefill-size, --max-running-requests
	GPUsUp     = "gpus-up"     // of GPUs, so less of each for the weights: --tp
	NoOrder    = "none"
)

var monotones = []string{MemoryUp, MemoryDown, GraphUp, LoadUp, GPUsUp, NoOrder}

// Categories say what the values of an axis choose between.
const (
	Backend      = "backend"      // kernels
	Quantization = "quantization" // of the weights
	KVType       = "kv-dtype"
	NoCategory   = "none"
)

var categories = []string{Backend, Quantization, KVType, NoCategory}

// orders are the flags whose order is known without being declared.
var orders = map[string]string{
	"--mem-fraction-static": MemoryUp, "--cpu-offload-gb": MemoryDown,
	"--cuda-graph-max-bs": GraphUp, "--cuda-graph-bs": NoOrder,
	"--chunked-prefill-size": LoadUp, "--max-prefill-tokens": LoadUp, "--max-running-requests": LoadUp,
	"--tp": GPUsUp, "--tp-size": GPUsUp, "--tensor-parallel-size": GPUsUp,
}

// Order is what the values of an axis are ordered by; "" = nothing.
func (s Study) Order(axis string) string {
	declared := s.Axes[axis].Monotone
	if declared == "" {
		declared = orders[axis]
	}
	if declared == NoOrder {
		return ""
	}
	return declared
}

// CategoryOf is what the values of an axis choose between; "" = nothing known.
func (s Study) CategoryOf(axis string) string {
	declared := s.Axes[axis].Category
	switch {
	case declared == NoCategory:
		return ""
	case declared != "":
		return declared
	case axis == PatchesAxis, strings.HasPrefix(axis, "--") && strings.HasSuffix(axis, "-backend"):
		return Backend
	case axis == "--quantization":
		return Quantization
	case axis == "--kv-cache-dtype":
		return KVType
	}
	return ""
}
