package metrics

import (
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sglaunch/internal/serve"
	"sglaunch/phases"
)

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// status is what every row reads, and teller how it tells a value.
type (
	status = serve.Status
	teller = func(value float64, labels ...string)
)

// States are those that a supervisor may be in, in their order.
var States = []string{"idle", "preflight", "patching", "starting", "checking", "up", "evidence", "stopping", "killing", "releasing", "reverting", "backoff", "ended"}

// table is every metric, in the order of the documentation.
var table = []metric{
	{"sglaunch_info", gauge, []string{"launch", "id"}, "Always 1: which launch this is.",
		func(s status, tell teller) { tell(1, s.Launch, s.ID) }},
	{"sglaunch_launch_start_time_seconds", gauge, nil, "When the launch began, Unix time.",
		func(s status, tell teller) { moment(s.Began, tell) }},
	{"sglaunch_state", gauge, []string{"state"}, "1 for the state that the launch is in, 0 for every other.",
		func(s status, tell teller) { oneOf(States, s.State, tell) }},
	{"sglaunch_announced", gauge, nil, "1 where requests may be sent: the server is ready, its answers were looked at where that was asked for, and its end has not begun.",
		func(s status, tell teller) { tell(truth(s.Serves())) }},
	{"sglaunch_server_ready", gauge, nil, "1 where the server has said that it is ready.",
		func(s status, tell teller) { tell(truth(s.Ready)) }},
	{"sglaunch_degraded", gauge, nil, "How many things differ from what was asked for: a patch that was left out, a fallback that was taken.",
		func(s status, tell teller) { tell(float64(len(s.Degraded))) }},
	{"sglaunch_suspect", gauge, nil, "1 where sglaunch would have ended the attempt, were it allowed to.",
		func(s status, tell teller) { tell(truth(s.Verdict != "")) }},
	{"sglaunch_output_check", gauge, []string{"result"}, "1 for how the look at the answers of this attempt stands: running, passed, partial, not_done, corrupt, off.",
		func(s status, tell teller) {
			if s.OutputCheck != nil {
				tell(1, s.OutputCheck.State)
			}
		}},

	{"sglaunch_attempt", gauge, nil, "Number of the current attempt, from 1.",
		func(s status, tell teller) { tell(float64(s.Attempt)) }},
	{"sglaunch_restarts_total", counter, nil, "Attempts after the first one.",
		func(s status, tell teller) { tell(float64(max(s.Attempt-1, 0))) }},
	{"sglaunch_failures_total", counter, []string{"cause"}, "Attempts that failed, by cause.",
		func(s status, tell teller) {
			for cause, n := range s.Failures {
				tell(float64(n), cause)
			}
		}},
	{"sglaunch_last_failure_info", gauge, []string{"outcome", "cause", "phase"}, "Always 1: how the newest failed attempt ended.",
		func(s status, tell teller) {
			if f := s.Failed; f != nil {
				tell(1, f.Outcome, f.Cause, f.Phase)
			}
		}},
	{"sglaunch_next_attempt_time_seconds", gauge, nil, "When the next attempt begins, Unix time, while one is waited for.",
		func(s status, tell teller) {
			if s.Next != nil {
				moment(s.Next.Time, tell)
			}
		}},

	{"sglaunch_phase", gauge, []string{"phase"}, "1 for the phase of the slowest rank, 0 for every other.",
		func(s status, tell teller) { oneOf(phaseNames(), s.Phase, tell) }},
	{"sglaunch_phase_seconds", gauge, []string{"phase"}, "How long each phase of the current attempt took, or takes so far.", phaseSeconds},
	{"sglaunch_progress_ratio", gauge, nil, "Share of the phase's counter that is done, 0 to 1, where the phase has one.",
		func(s status, tell teller) {
			if p := s.Progress; p != nil && p.Total > 0 {
				tell(float64(p.Done) / float64(p.Total))
			}
		}},
	{"sglaunch_last_progress_time_seconds", gauge, nil, "When anything last moved, Unix time.",
		func(s status, tell teller) {
			if s.Moved != nil {
				moment(s.Moved.Time, tell)
			}
		}},
	{"sglaunch_ready_in_seconds", gauge, nil, "How long it should still take until the server is ready, where earlier starts tell.",
		func(s status, tell teller) {
			if s.Left != nil && !s.Left.Overdue {
				tell(s.Left.Seconds)
			}
		}},

	{"sglaunch_gpu_memory_used_bytes", gauge, gpuLabels, "Memory in use, by anybody.",
		ofGPU(func(g serve.GPU, tell func(float64)) { number(g.Used, 1, tell) })},
	{"sglaunch_gpu_memory_total_bytes", gauge, gpuLabels, "Memory of the GPU.",
		ofGPU(func(g serve.GPU, tell func(float64)) { number(g.Total, 1, tell) })},
	{"sglaunch_gpu_busy_ratio", gauge, gpuLabels, "Share of the time in which a kernel ran, 0 to 1.",
		ofGPU(func(g serve.GPU, tell func(float64)) { number(g.Util, 0.01, tell) })},
	{"sglaunch_gpu_memory_busy_ratio", gauge, gpuLabels, "Share of the time in which memory was moved, 0 to 1.",
		ofGPU(func(g serve.GPU, tell func(float64)) { number(g.MemUtil, 0.01, tell) })},
	{"sglaunch_gpu_power_watts", gauge, gpuLabels, "Power drawn.",
		ofGPU(func(g serve.GPU, tell func(float64)) {
			if g.Watts != nil {
				tell(*g.Watts)
			}
		})},
	{"sglaunch_gpu_lost", gauge, gpuLabels, "1 where the GPU is lost: only a reset or a reboot brings it back.",
		ofGPU(func(g serve.GPU, tell func(float64)) { tell(truth(g.Lost)) })},

	{"sglaunch_server_processes", gauge, nil, "Living processes of the attempt.",
		func(s status, tell teller) { tell(float64(s.Processes.Members)) }},
	{"sglaunch_supervisor_restarts_total", counter, nil, "Supervisors of this launch that died and were started again.",
		func(s status, tell teller) { tell(float64(s.Restarts)) }},
	{"sglaunch_output_bytes_total", counter, nil, "Bytes that the server has printed.",
		func(s status, tell teller) { tell(float64(s.Output.Bytes)) }},
	{"sglaunch_output_lost_bytes_total", counter, nil, "Bytes of output that neither memory nor disk could hold.",
		func(s status, tell teller) { tell(float64(s.Output.Lost)) }},
	{"sglaunch_records_dropped_total", counter, nil, "Events that the disk did not take in time.",
		func(s status, tell teller) { tell(float64(s.Output.Dropped)) }},
	{"sglaunch_source_silent", gauge, []string{"source"}, "1 for a source that tells nothing at the moment: the driver hangs, /proc cannot be read.",
		func(s status, tell teller) {
			for _, text := range s.Silent {
				source, _, _ := strings.Cut(text, ":")
				tell(1, source)
			}
		}},
}

var gpuLabels = []string{"gpu", "uuid", "name"}

// ofGPU reads a metric off each GPU.
func ofGPU(read func(serve.GPU, func(float64))) func(status, teller) {
	return func(s status, tell teller) {
		for _, g := range s.GPUs {
			read(g, func(v float64) { tell(v, strconv.Itoa(g.Index), g.UUID, g.Name) })
		}
	}
}

func number(v *int64, scale float64, tell func(float64)) {
	if v != nil {
		tell(float64(*v) * scale)
	}
}

func moment(t time.Time, tell teller) {
	if !t.IsZero() {
		tell(float64(t.UnixMilli()) / 1000)
	}
}

func oneOf(all []string, now string, tell teller) {
	for _, name := range all {
		tell(truth(name == now), name)
	}
}

func phaseNames() []string {
	var names []string
	for _, p := range phases.Phases() {
		names = append(names, p.String())
	}
	return names
}

// phaseSeconds: those that are over as they were told, the one that lasts up
// to now.
func phaseSeconds(s status, tell teller) {
	for phase, took := range s.PhaseSeconds {
		if phase != s.Phase {
			tell(took, phase)
		}
	}
	if s.Phase != "" && !s.PhaseSince.IsZero() {
		tell(max(s.Time.Sub(s.PhaseSince).Seconds(), 0), s.Phase)
	}
}
