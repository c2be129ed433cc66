package gpu

import (
	"encoding/json"
	"time"
)

// Reading is a figure that the driver may decline to give.
// In JSON it is the number, or absent.
type Reading struct {
	Value int64
	Known bool
}

// Read returns a known reading.
func Read(v int64) Reading { return Reading{Value: v, Known: true} }

// Is tells whether the reading is known to be v.
func (r Reading) Is(v int64) bool { return r.Known && r.Value == v }

// Above tells whether the reading is known to be more than v.
func (r Reading) Above(v int64) bool { return r.Known && r.Value > v }

// IsZero tells whether the reading is unknown, for `json:",omitzero"`.
func (r Reading) IsZero() bool { return !r.Known }

// MarshalJSON writes the number, or null.
func (r Reading) MarshalJSON() ([]byte, error) {
	if !r.Known {
		return []byte("null"), nil
	}
	return json.Marshal(r.Value)
}

// UnmarshalJSON reads a number, or null for unknown.
func (r *Reading) UnmarshalJSON(text []byte) error {
	var v *int64
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	*r = Reading{}
	if v != nil {
		*r = Read(*v)
	}
	return nil
}

// Process is one holder of memory on a GPU, as the driver sees it: in a
// container the pid may be one of the host's, and the list may be empty though
// memory is held.
type Process struct {
	PID   int     `json:"pid"`
	Bytes Reading `json:"bytes,omitzero"`
}

// GPU is what one GPU, or one MIG instance, answered.
type GPU struct {
	Index int    `json:"index"` // NVML's order, which is the PCI order; CUDA's may differ
	UUID  string `json:"uuid,omitempty"`
	Name  string `json:"name,omitempty"`
	PCI   string `json:"pci,omitempty"` // 00000000:3B:00.0

	// Bytes. Total is 0 where the driver did not tell. Used does not contain
	// Reserved, which the driver keeps for itself, unless the driver is too old
	// to tell them apart (then Reserved is 0).
	Total    uint64 `json:"total,omitempty"`
	Used     uint64 `json:"used,omitempty"`
	Free     uint64 `json:"free,omitempty"`
	Reserved uint64 `json:"reserved,omitempty"`

	Util     Reading `json:"util,omitzero"`      // percent of the time with a kernel running; a spin counts
	MemUtil  Reading `json:"mem_util,omitzero"`  // percent of the time with memory traffic; a spin has none
	PowerMW  Reading `json:"power_mw,omitzero"`  // milliwatts
	LimitMW  Reading `json:"limit_mw,omitzero"`  // milliwatts that the driver lets it draw, after all limits, also those from outside
	EnergyMJ Reading `json:"energy_mj,omitzero"` // millijoules since the driver was loaded
	PState   Reading `json:"pstate,omitzero"`    // 0 is the fastest, 15 the slowest
	TempC    Reading `json:"temp_c,omitzero"`    // degrees Celsius
	SMClock  Reading `json:"sm_clock,omitzero"`  // MHz
	MemClock Reading `json:"mem_clock,omitzero"` // MHz
	Throttle Reading `json:"throttle,omitzero"`  // bits; see ThrottleReasons

	ECCCorrected   Reading  `json:"ecc_corrected,omitzero"`   // since the driver was loaded
	ECCUncorrected Reading  `json:"ecc_uncorrected,omitzero"` // since the driver was loaded
	Remapped       Remapped `json:"remapped,omitzero"`
	Recovery       Reading  `json:"recovery,omitzero"` // what the driver asks for; see RecoveryAction
	Fabric         string   `json:"fabric,omitempty"`  // of NVSwitch systems: not_started, in_progress, completed; or an error

	// Processes is nil where nobody asked or the driver did not tell, empty
	// where it told that there is none.
	Processes []Process `json:"processes"`

	Instances []GPU  `json:"instances,omitempty"` // MIG instances, where the GPU is partitioned
	Parent    string `json:"parent,omitempty"`    // of an instance: the UUID of its GPU

	Lost bool   `json:"lost,omitempty"` // fell off the bus: nothing but a reset or a reboot brings it back
	Err  string `json:"err,omitempty"`  // the first thing it refused, other than "not supported"
}

// Remapped are the rows of memory that the GPU has taken out of use.
type Remapped struct {
	Corrected   Reading `json:"corrected,omitzero"`
	Uncorrected Reading `json:"uncorrected,omitzero"`
	Pending     bool    `json:"pending,omitempty"` // a reset is needed before they are out of use
	Failed      bool    `json:"failed,omitempty"`  // no spare row left: replace the GPU
}

// MemoryKnown tells whether the driver told the GPU's memory.
func (g GPU) MemoryKnown() bool { return g.Total > 0 }

// Sample is one round over all GPUs.
type Sample struct {
	At     time.Time     `json:"at"` // when the round began
	Took   time.Duration `json:"took_ns"`
	Driver string        `json:"driver,omitempty"` // version of the kernel driver
	NVML   string        `json:"nvml,omitempty"`   // version of the library
	CUDA   string        `json:"cuda,omitempty"`   // newest CUDA that the driver serves: 13.0
	GPUs   []GPU         `json:"gpus"`
	Err    string        `json:"err,omitempty"`  // why there are none
	Code   int           `json:"code,omitempty"` // NVML's return code with Err: 9 driver not loaded, 18 version mismatch
}

// Find returns the GPU or MIG instance with that UUID.
func (s Sample) Find(uuid string) (GPU, bool) {
	for _, g := range s.GPUs {
		if g.UUID == uuid {
			return g, true
		}
		for _, i := range g.Instances {
			if i.UUID == uuid {
				return i, true
			}
		}
	}
	return GPU{}, false
}
