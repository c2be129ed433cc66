package supervisor

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"sglaunch/supervisor/machine"
)

// A wish to end is a signal that reached the shim. It may have done so while no
// supervisor listened.

// stopBy is the wish to end that a signal to the shim tells. Who types Ctrl-\ does
// not mean to wait for a drain.
func stopBy(sig int) machine.StopAsked {
	return machine.StopAsked{By: signalName(sig), Force: sig == int(unix.SIGQUIT)}
}

// inOrder puts the wishes to end where they belong: after the news of how things
// stand, which take up what goes on; before it where the shim has granted them, or
// the end of the server would be told as nobody's wish.
func inOrder(stands machine.Body, asked []int, granted bool) []machine.Body {
	var stops []machine.Body
	for _, sig := range asked {
		stops = append(stops, stopBy(sig))
	}
	if granted {
		return append(stops, stands)
	}
	return append([]machine.Body{stands}, stops...)
}

// unheard are the wishes to end that reached the shim and no supervisor: the one
// before died of something else at that moment. A hangup is one where a terminal
// has vanished.
func unheard(asked []int, heard int, terminal bool) []int {
	stops := slices.DeleteFunc(slices.Clone(asked), func(sig int) bool { return sig == int(unix.SIGHUP) && !terminal })
	return stops[min(heard, len(stops)):]
}

// signalName is the word for a signal that a person would use.
func signalName(sig int) string {
	if name := unix.SignalName(unix.Signal(sig)); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", sig)
}
