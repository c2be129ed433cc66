package phases

import (
	"strings"
	"testing"
)

// TestNumbers: NCCL numbers the GPUs of a node; where the ranks have other names, or
// none, what it says of its numbers holds nobody back.
func TestNumbers(t *testing.T) {
	for _, name := range []string{"", " TP0", " TP8", " TP0 EP0", " DP0 TP0", " PP1 TP0"} {
		log := strings.ReplaceAll(`[2026-07-08 06:55:01@] Init torch distributed begin.
node-1:276:276 [0] NCCL INFO ncclCommInitRank comm 0x369e2a10 rank 8 nranks 16 cudaDev 0 nvmlDev 0 busId ae000 commId 0x4ed8 - Init COMPLETE
[2026-07-08 06:55:04@] Load weight begin. avail mem=177.57 GB
[2026-07-08 06:56:04@] Load weight end. type=FooForCausalLM, dtype=torch.bfloat16, avail mem=8.37 GB
node-1:276:276 [0] NCCL INFO Connected all trees
[2026-07-08 06:56:05@] Capture cuda graph begin. This can take up to several minutes. avail mem=7.45 GB
`, "@", name)
		r := explainBytes([]byte(log))
		if r.Phase != GraphCapture || r.Cause != nil || len(r.Lagging) > 0 {
			t.Errorf("a rank called %q: phase %s, cause %v, lagging %v", name, r.Phase, r.Cause, r.Lagging)
		}
		for rank, phase := range r.Ranks {
			if phase != GraphCapture {
				t.Errorf("a rank called %q: %s is in %s", name, rank, phase)
			}
		}
	}
}

// TestNumbersAlone: where nobody with a name has spoken, the numbers are all there is.
func TestNumbersAlone(t *testing.T) {
	r := explainBytes([]byte(`node-1:276:276 [5] NCCL INFO ncclCommInitRank comm 0x369e2a10 rank 5 nranks 8 cudaDev 5 nvmlDev 5 busId ae000 commId 0x4ed8 - Init START
node-1:277:277 [6] NCCL INFO ncclCommInitRank comm 0x369e2a11 rank 6 nranks 8 cudaDev 6 nvmlDev 6 busId af000 commId 0x4ed8 - Init START
`))
	if r.Phase != DistributedInit || r.Ranks["rank5"] != DistributedInit || r.Ranks["rank6"] != DistributedInit {
		t.Errorf("phase %s, ranks %v", r.Phase, r.Ranks)
	}
}
