package supervisor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sglaunch/internal/gpu"
	"sglaunch/internal/proc"
	"sglaunch/supervisor/machine"
)

// What driver and kernel say of GPUs. Only the launch's own count: on a shared
// machine the neighbour's fault is the neighbour's.

// xid turns an Xid into an event with what NVIDIA's catalogue says of it.
func (w *watcher) xid(x gpu.Xid) {
	w.mu.Lock()
	sample := w.sample
	w.told = append(w.told, x)
	w.mu.Unlock()
	now, _ := sample.Find(x.UUID)
	text, ours := x.String(), w.ours(x, sample)
	if !ours {
		text += ", not of this launch"
	}
	act := ours && !w.h.settings().XidReport
	w.h.loop.Post(0, machine.Hardware{GPU: x.Index, Xid: x.Code, Text: text, Lost: act && now.Lost, Person: act && !x.Action(now).Relaunch()})
}

// ours reports whether an Xid is of a GPU of this launch. Where nobody could say
// which ones are ours, every one may be.
func (w *watcher) ours(x gpu.Xid, sample gpu.Sample) bool {
	picked := w.h.pick(sample)
	if len(picked) == 0 {
		return true
	}
	mine := func(g gpu.GPU) bool { return g.UUID == x.UUID || g.Parent != "" && g.Parent == x.UUID }
	return slices.ContainsFunc(picked, mine) || x.UUID == "" && len(picked) == len(sample.GPUs)
}

// unheard reports whether the driver has not told of an Xid itself.
func (w *watcher) unheard(x gpu.Xid) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	same := func(o gpu.Xid) bool { return o.Code == x.Code && o.UUID == x.UUID }
	return !slices.ContainsFunc(w.told, same)
}

// worsened tells which GPUs of the launch have got worse since it began.
func (w *watcher) worsened(sample gpu.Sample) {
	w.h.mu.Lock()
	before := w.h.baseline
	w.h.mu.Unlock()
	for _, then := range before {
		now, ok := sample.Find(then.UUID)
		if news := gpu.Worsened(then, now); ok && len(news) > 0 {
			w.h.loop.Post(0, machine.Hardware{GPU: now.Index, Text: fmt.Sprintf("GPU %d since the attempt began: %s", now.Index, strings.Join(news, ", "))})
		}
		if action := now.RecoveryAction(); ok && action != "" && then.RecoveryAction() == "" {
			w.h.loop.Post(0, machine.Hardware{GPU: now.Index, Text: fmt.Sprintf("GPU %d: %s", now.Index, now.Trouble()), Person: !w.h.settings().XidReport})
		}
	}
}

// kernelNews reads the kernel log since the attempt began. What the driver has
// not told itself is told now; killed is the word that the kernel ended one of
// ours for want of memory.
func (h *hands) kernelNews(ctx context.Context) (text, killed string) {
	h.mu.Lock()
	since, gpus := h.since, h.baseline
	h.mu.Unlock()
	news, err := gpu.ReadKernelLog(ctx, since, gpus)
	if err != nil {
		return err.Error() + "\n", ""
	}
	var b strings.Builder
	for _, in := range gpu.Incidents(news.Xids) {
		fmt.Fprintf(&b, "%s %s (%d times)\n", in.At.Format(time.RFC3339), in.Xid, in.Count)
		if h.watch.unheard(in.Xid) {
			h.watch.xid(in.Xid)
		}
	}
	for _, k := range news.Kills {
		fmt.Fprintf(&b, "%s %s\n", k.At.Format(time.RFC3339), k.Text)
		if proc.HostPIDs() && h.isOurs(k.PID) {
			killed = "the kernel ended one of its processes: " + k.Text
		}
	}
	if b.Len() == 0 {
		return "nothing since the attempt began\n", ""
	}
	return b.String(), killed
}

// noNVML tells that the GPUs cannot be read at the moment.
func (w *watcher) noNVML(why string) {
	w.mu.Lock()
	w.silent["NVML"] = why
	w.mu.Unlock()
	w.h.loop.Post(0, machine.SourceLost{Source: "NVML", Reason: why})
}

// gpus takes the news of the sampler until it ends.
func (w *watcher) gpus() {
	for e := range w.h.gpus.Events() {
		w.gpuNews(e)
	}
}

func (w *watcher) gpuNews(e gpu.Event) {
	switch n := e.(type) {
	case gpu.Sample:
		w.mu.Lock()
		w.sample = n
		delete(w.silent, "NVML")
		w.mu.Unlock()
		w.h.watermark(n)
		w.h.record(n)
	case gpu.SourceAbsent:
		w.noNVML(n.Reason)
	case gpu.SourceHanging:
		w.noNVML("the driver has not answered for " + n.For.Round(time.Second).String())
	case gpu.SourceLost:
		w.noNVML(n.Why)
	case gpu.Xid:
		w.xid(n)
	}
}
