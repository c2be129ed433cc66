package supervisor

import (
	"maps"
	"slices"

	"sglaunch/supervisor/machine"
)

// noNVML tells that the GPUs cannot be read at the moment.
func (w *watcher) noNVML(why string) {
	w.mu.Lock()
	w.silent["NVML"] = why
	w.mu.Unlock()
	w.h.loop.Post(0, machine.SourceLost{Source: "NVML", Reason: why})
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
