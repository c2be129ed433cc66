package bench

// The clients. Own is a command of one's own that writes the JSON of one of the
// others.
const (
	Serving  = "sglang.bench_serving"
	OneBatch = "sglang.bench_one_batch_server"
	VLLM     = "vllm"
	Own      = "own"
)

// Kinds lists the clients.
func Kinds() []string { return []string{Serving, OneBatch, VLLM, Own} }
