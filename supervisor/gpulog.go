package supervisor

import (
	"encoding/json"
	"time"

	"sglaunch/internal/gpu"
)

// gpuRecord is one line of an attempt's gpu.jsonl: what the driver said of the
// launch's GPUs at a moment.
type gpuRecord struct {
	V    int       `json:"v"`
	Time time.Time `json:"time"`
	Took string    `json:"took"`
	GPUs []gpu.GPU `json:"gpus"`
}

// record keeps a sample beside the output of the attempt that it belongs to.
func (h *hands) record(s gpu.Sample) {
	h.mu.Lock()
	attempt := h.attempt
	h.mu.Unlock()
	if attempt == 0 {
		return
	}
	line, err := json.Marshal(gpuRecord{V: 1, Time: s.At, Took: s.Took.Round(time.Microsecond).String(), GPUs: h.pick(s)})
	if err != nil {
		return
	}
	select {
	case h.samples <- sampleLine{attempt, line}:
	default: // the disk hangs; a sample is not worth waiting for
	}
}

type sampleLine struct {
	attempt int
	line    []byte
}

// writeSamples keeps the samples of each attempt in a file of its own.
func (h *hands) writeSamples() {
	var file appender
	each(h.samples, h.ending, func(s sampleLine) {
		file.to(h.attemptFolder(s.attempt).GPUs())
		_, _ = file.Write(append(s.line, '\n'))
	})
	file.close()
}
