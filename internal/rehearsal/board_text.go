package rehearsal

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// String is the text of the file: lines of a key, a blank and a value.
func (b Board) String() string {
	w := lines{}
	w.add("gpus", len(b.GPUs))
	w.add("driver", b.Driver)
	w.add("cuda", b.CUDA)
	w.add("release", b.Release)
	w.add("init.code", b.InitCode)
	w.add("init.hang", b.InitHang)
	w.codes("code.", b.Codes)
	for i, g := range b.GPUs {
		g.lines(&w, fmt.Sprintf("%d.", i))
		for j, instance := range g.MIG {
			instance.lines(&w, fmt.Sprintf("%d.", firstMIG+i*maxMIG+j))
		}
	}
	return w.String()
}

func (g GPU) lines(w *lines, at string) {
	w.add(at+"name", g.Name)
	w.add(at+"uuid", g.UUID)
	w.add(at+"total", g.Total)
	w.add(at+"reserved", g.Reserved)
	w.add(at+"used", g.Used)
	w.add(at+"util", g.Util)
	w.add(at+"memutil", g.MemUtil)
	w.add(at+"temperature", g.Temperature)
	w.add(at+"power", g.Power)
	w.add(at+"powerlimit", g.PowerLimit)
	w.add(at+"energy", g.Energy)
	w.add(at+"pstate", g.PState)
	w.add(at+"smclock", g.SMClock)
	w.add(at+"memclock", g.MemClock)
	w.add(at+"fan", g.FanSpeed)
	w.add(at+"reasons", g.Reasons)
	w.add(at+"ecc.corrected", g.ECCCorr)
	w.add(at+"ecc.uncorrected", g.ECCUncorr)
	w.add(at+"remap.corrected", g.RemappedCorr)
	w.add(at+"remap.uncorrected", g.RemappedUncorr)
	w.add(at+"remap.pending", g.RemapPending)
	w.add(at+"remap.failed", g.RemapFailed)
	w.add(at+"code", g.Code)
	w.add(at+"hang", g.Hang)
	w.codes(at+"code.", g.Codes)
	w.add(at+"fabric.state", g.Fabric)
	w.add(at+"mig", len(g.MIG))
	for _, id := range slices.Sorted(maps.Keys(g.Fields)) {
		fmt.Fprintf(w, "%sfield.%d %d\n", at, id, g.Fields[id]) // a zero is a value here
	}
	var procs []string
	for _, pid := range slices.Sorted(maps.Keys(g.Procs)) {
		procs = append(procs, fmt.Sprintf("%d:%d", pid, g.Procs[pid]))
	}
	w.add(at+"procs", strings.Join(procs, ","))
}

// lines collects the lines of a board; what is zero needs none.
type lines struct{ strings.Builder }

func (w *lines) add(key string, value any) {
	text := fmt.Sprint(value)
	switch text {
	case "", "0", "false":
		return
	case "true":
		text = "1"
	}
	text = strings.ReplaceAll(text, "\n", " ") // a name must not become a line of its own
	fmt.Fprintf(w, "%s %s\n", key, text)
}

func (w *lines) codes(prefix string, codes map[string]int) {
	for _, name := range slices.Sorted(maps.Keys(codes)) {
		w.add(prefix+name, codes[name])
	}
}
