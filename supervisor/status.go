package supervisor

import (
	"maps"
	"os"
	"slices"
	"time"

	"sglaunch/internal/gpu"
	"sglaunch/internal/mask"
	"sglaunch/internal/serve"
	"sglaunch/supervisor/machine"
)

// status is the launch right now. It may be called from any goroutine.
func (s *station) status() serve.Status {
	s.mu.Lock()
	v := s.view
	st := serve.Status{
		V: serve.Version, Time: time.Now(), Launch: s.h.Name, Attempt: v.Attempt, Event: serve.EventStatus,
		State: string(v.State), Since: v.Spawned, Degraded: v.Degraded, Verdict: mask.String(v.Verdict),
	}
	s.tally.fill(&st)
	if s.http != nil {
		st.HTTP = s.http.Address()
	}
	s.mu.Unlock()
	st.Output, st.Silent, st.Restarts = s.h.counts(), s.h.watch.silentSources(), s.h.restarts
	l := s.h.launch
	st.ID, st.Dir, st.Command, st.Began = l.ID, l.Path, l.record.Command, l.record.Time
	st.Processes = serve.Processes{Shim: l.record.Shim.PID, Supervisor: os.Getpid(), Members: len(s.h.watch.ids())}
	if v.Stop != nil {
		st.Stop = &serve.Stop{By: v.Stop.By}
	}
	if !v.Spawned.IsZero() {
		s.running(&st, v)
	}
	st.GPUs = s.h.watch.table()
	return st
}

// running adds what is known of an attempt with a server.
func (s *station) running(st *serve.Status, v machine.View) {
	if v.Server != nil {
		st.Processes.Server = v.Server.PID
	} else {
		st.Processes.Members = 0
	}
	st.Phase, st.PhaseSince = v.Phase.String(), v.Phased
	st.Ready, st.ReadySince = v.State == machine.StateChecking || v.State == machine.StateUp, v.Ready
	st.Moved = &serve.Moved{Time: v.Moved, By: v.MovedBy}
	report, ok := s.h.reader.Report()
	if !ok {
		return
	}
	if len(report.Ranks) > 0 {
		st.Ranks = map[string]string{}
		for rank, phase := range report.Ranks {
			st.Ranks[rank] = phase.String()
		}
	}
	st.Activities = report.Activities
	if v.State != machine.StateStarting {
		return
	}
	st.Lagging = report.Lagging
	var done, total int64
	if p := report.Progress; p != nil && report.Phase == v.Phase {
		done, total = p.Done, p.Total
		st.Progress = &serve.Progress{Done: p.Done, Total: p.Total, Unit: p.Unit}
	}
	st.Left = s.h.launch.memory.left(v.Phase, v.Phased, done, total)
}

// table is what the newest sample says of the launch's GPUs.
func (w *watcher) table() []serve.GPU {
	w.mu.Lock()
	sample := w.sample
	w.mu.Unlock()
	var all []serve.GPU
	for _, g := range w.h.pick(sample) {
		row := serve.GPU{Index: g.Index, UUID: g.UUID, Name: g.Name, Lost: g.Lost,
			Util: readingOf(g.Util), MemUtil: readingOf(g.MemUtil)}
		if g.MemoryKnown() {
			used, total := int64(g.Used), int64(g.Total)
			row.Used, row.Total = &used, &total
		}
		if g.PowerMW.Known {
			watts := float64(g.PowerMW.Value) / 1000
			row.Watts = &watts
		}
		all = append(all, row)
	}
	return all
}

func readingOf(r gpu.Reading) *int64 {
	if !r.Known {
		return nil
	}
	return &r.Value
}

// silentSources lists the sources that tell nothing at the moment: "NVML: ...".
func (w *watcher) silentSources() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, source := range slices.Sorted(maps.Keys(w.silent)) {
		all = append(all, source+": "+w.silent[source])
	}
	return all
}

// counts are what the server has printed, and what was lost of it.
func (h *hands) counts() serve.Output {
	o := h.reader.Counts()
	o.Dropped = h.dropped.Load() + h.launch.journal.Dropped()
	return o
}
