package gpu

import (
	"maps"
	"slices"
)

// Need is what the next attempt wants free on one GPU.
type Need struct {
	UUID string
	Free uint64 // bytes
}

// Release is the answer to: did the GPUs of an attempt come free?
type Release struct {
	// Done: nothing of the attempt is known to hold memory, what the next one
	// needs is free, and no GPU is haunted.
	Done    bool
	Unknown bool     // a GPU did not tell enough to say; Done is false then
	Ours    []Holder // processes of the attempt that still hold memory
	Foreign []Holder // processes of others that are new or hold more than before: news, not failure
	Ghosts  []Ghost  // memory or work that was not there before and no process explains
	Short   []Need   // GPUs with less free than needed; Free is what is free
}

// Holder is a process that holds memory of a GPU.
type Holder struct {
	UUID  string
	Index int
	PID   int
	Bytes Reading
}

// Ghost is memory in use, or a GPU at full utilisation, that no listed process
// explains: a process of another namespace, or a driver that lost track.
type Ghost struct {
	UUID  string
	Index int
	Bytes uint64  // held by nobody; 0 = no more than before the attempt
	Util  Reading // known = full, with no process on the GPU
}

const (
	// slack is how far two looks at an idle GPU may lie apart: the driver's own
	// share moves. The context of a CUDA process alone takes more.
	slack = 256 << 20
	// fullUtil is the utilisation, in percent, of a GPU that works or spins.
	fullUtil = 95
)

// Released compares the GPUs as they were before an attempt with how they are
// after it. Both need process lists (Source.Snapshot). ours tells whether a pid
// belonged to the attempt; in a container the driver shows the pids of another
// namespace, or none, and then memory alone decides.
//
// Ghost memory counts only where need says nothing about the GPU: what the next
// attempt needs is free or it is not, whoever holds the rest.
func Released(before, after []GPU, ours func(pid int) bool, need []Need) Release {
	var r Release
	r.Unknown = len(after) == 0
	needed := map[string]bool{}
	for _, n := range need {
		needed[n.UUID] = true
		r.compare(n, after)
	}
	haunted := false
	for _, now := range after {
		then, seen := byUUID(before, now.UUID)
		if now.Lost || !now.MemoryKnown() {
			r.Unknown = true
			continue
		}
		held := r.holders(then, now, ours)
		if !seen || now.Processes == nil {
			continue
		}
		if g, ok := ghost(then, now, held); ok {
			r.Ghosts = append(r.Ghosts, g)
			haunted = haunted || g.Util.Known || !needed[g.UUID]
		}
	}
	r.Done = !r.Unknown && len(r.Ours) == 0 && len(r.Short) == 0 && !haunted
	return r
}

func byUUID(gpus []GPU, uuid string) (GPU, bool) {
	return Sample{GPUs: gpus}.Find(uuid)
}

func (r *Release) compare(n Need, after []GPU) {
	now, ok := byUUID(after, n.UUID)
	switch {
	case !ok || !now.MemoryKnown():
		r.Unknown = true
	case now.Free < n.Free:
		r.Short = append(r.Short, Need{UUID: n.UUID, Free: now.Free})
	}
}

// holders sorts the processes on a GPU. It returns how much all of them
// together hold more than those that were there before; negative when less.
func (r *Release) holders(then, now GPU, ours func(int) bool) (more int64) {
	for _, p := range then.Processes {
		more -= p.Bytes.Value
	}
	for _, p := range now.Processes {
		more += p.Bytes.Value
		h := Holder{UUID: now.UUID, Index: now.Index, PID: p.PID, Bytes: p.Bytes}
		old, was := byPID(then.Processes, p.PID)
		switch {
		case ours(p.PID):
			r.Ours = append(r.Ours, h)
		case !was || p.Bytes.Value-old.Bytes.Value > slack:
			r.Foreign = append(r.Foreign, h)
		}
	}
	return more
}

func byPID(list []Process, pid int) (Process, bool) {
	i := slices.IndexFunc(list, func(p Process) bool { return p.PID == pid })
	if i < 0 {
		return Process{}, false
	}
	return list[i], true
}

// ghost looks for what the processes, which hold more bytes than before, do
// not explain. Where one of them does not tell its memory, everything is
// explained.
func ghost(then, now GPU, more int64) (Ghost, bool) {
	g := Ghost{UUID: now.UUID, Index: now.Index}
	untold := slices.ContainsFunc(now.Processes, func(p Process) bool { return !p.Bytes.Known })
	if unexplained := int64(now.Used) - int64(then.Used) - more; unexplained > slack && !untold {
		g.Bytes = uint64(unexplained)
	}
	if now.SpinsAlone() && !then.Util.Above(fullUtil) {
		g.Util = now.Util
	}
	return g, g.Bytes > 0 || g.Util.Known
}

// Watermark remembers the most that an attempt held on each GPU, which is what
// the next one will need. The zero value is not usable; see NewWatermark.
type Watermark struct {
	idle map[string]uint64 // used before the attempt
	peak map[string]uint64 // by UUID
}

// NewWatermark begins to watch; before are the GPUs of the attempt as it found
// them.
func NewWatermark(before []GPU) *Watermark {
	w := &Watermark{idle: map[string]uint64{}, peak: map[string]uint64{}}
	for _, g := range before {
		if g.MemoryKnown() {
			w.idle[g.UUID] = g.Used
			w.peak[g.UUID] = 0
		}
	}
	return w
}

// Add takes in a sample. GPUs that are not the attempt's are left out.
func (w *Watermark) Add(s Sample) {
	for uuid, idle := range w.idle {
		if g, ok := s.Find(uuid); ok && g.Used > idle {
			w.peak[uuid] = max(w.peak[uuid], g.Used-idle)
		}
	}
}

// Needs returns the peaks, in the order of the UUIDs.
func (w *Watermark) Needs() []Need {
	var needs []Need
	for _, uuid := range slices.Sorted(maps.Keys(w.peak)) {
		needs = append(needs, Need{UUID: uuid, Free: w.peak[uuid]})
	}
	return needs
}
