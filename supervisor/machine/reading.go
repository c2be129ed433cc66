package machine

// What the sources show at a moment; moving.go says what a difference means.

// Activity is one reading of what the attempt's processes and GPUs do.
// Counters are totals; the machine compares them with the reading before.
type Activity struct {
	CPU       float64       `json:"cpu"`        // seconds used by the tree so far
	ReadBytes uint64        `json:"read_bytes"` // from storage
	Faults    uint64        `json:"faults"`     // minor and major page faults
	Compilers []string      `json:"compilers,omitempty"`
	Written   uint64        `json:"written,omitempty"` // bytes to storage
	GPUs      []GPUActivity `json:"gpus,omitempty"`
	Pressure  *Pressure     `json:"pressure,omitempty"` // nil = not known, or nobody looked
	Cached    *float64      `json:"cached,omitempty"`   // share of the weights that is in the page cache; nil likewise
	Memory    []MemoryGroup `json:"memory,omitempty"`   // that count the server's host memory, the innermost first; nil likewise
	Missing   []string      `json:"missing,omitempty"`  // sources that gave nothing this time, and why
	Blocked   []string      `json:"blocked,omitempty"`  // members in uninterruptible sleep
}

// Pressure is how much of the last ten seconds a task of the server, or of the
// machine, waited for a resource, in percent.
type Pressure struct {
	CPU    float64 `json:"cpu"`
	Memory float64 `json:"memory"`
	IO     float64 `json:"io"`
}

// MemoryGroup is what a control group around the server tells of host memory, in
// bytes. Counters are totals.
type MemoryGroup struct {
	Name    string `json:"name"`
	Limit   uint64 `json:"limit,omitempty"` // 0 = none
	Used    uint64 `json:"used"`
	Cache   uint64 `json:"cache,omitempty"`   // of it, file pages that the kernel can take back
	Killed  uint64 `json:"killed,omitempty"`  // processes that the kernel ended for want of memory
	Counted bool   `json:"counted,omitempty"` // Killed is known
	Reached uint64 `json:"reached,omitempty"` // how often its own limit was reached
	Slowed  uint64 `json:"slowed,omitempty"`  // how often it was slowed down above its high mark
}

// GPUActivity is one GPU's part of an Activity. Negative means unknown.
type GPUActivity struct {
	Index   int   `json:"index"`
	Used    int64 `json:"used"`    // bytes
	Util    int   `json:"util"`    // percent of time that a kernel ran
	MemUtil int   `json:"memutil"` // percent of time that memory was read or written
	PowerMW int   `json:"power"`
}
