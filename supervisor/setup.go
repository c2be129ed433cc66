package supervisor

import (
	"time"

	"sglaunch/internal/history"
	"sglaunch/internal/notify"
	"sglaunch/internal/sglangcmd"
	"sglaunch/internal/shim/wire"
	"sglaunch/internal/statedir"
	"sglaunch/patch"
	"sglaunch/phases"
	"sglaunch/supervisor/machine"
)

// Setup is what a launch consists of: the command, the files to patch, the
// places to write to. Options say how to decide about it.
type Setup struct {
	Name    string
	Argv    []string
	Dir     string   // working directory of the server
	Env     []string // environment of the server, complete
	Stdio   string   // pty, pipe
	Stdin   string   // auto, null, inherit
	Python  string   // interpreter for patches; "" = found from the command
	URL     string   // base URL of the server; "" = from the command
	Socket  string   // control socket; "" = in the runtime directory
	HTTP    string   // host:port of status and metrics; "" = off
	Quiet   bool     // no lines of sglaunch's own
	Patches []patch.Patch
	Devices []string // UUIDs; empty = from the command
	// Settings are those that the launch begins with. What reads them later asks
	// hands.settings: a reload replaces them.
	Settings Settings
	// Reload reads the configuration again; nil = there is none to read. It may
	// take as long as a file system hangs.
	Reload func() (Reloaded, error)
	// Remember is given to the supervisor after this one, by the shim.
	Remember string

	// OnOutput is given every stretch of output before it is interpreted; nil
	// = nobody looks. Tests make a supervisor die of a line with it.
	OnOutput func([]byte)

	State   statedir.Dir
	Sampler []string // argv of the NVML sampler; nil = do not look at GPUs

	command sglangcmd.Command
}

// Settings are the part of a Setup that may change while the server runs.
type Settings struct {
	Hooks    notify.Hooks
	Rules    *phases.RuleSet // of attempts that begin from now on
	Keep     history.Keep    // of what launches leave behind
	Rotate   wire.Rotate     // the raw log, of attempts that begin from now on
	Starting time.Duration   // between two samples while starting
	Serving  time.Duration   // and afterwards
	// XidReport: an Xid is told and nothing follows from it.
	XidReport bool
}

// Reloaded is a configuration that was read again.
type Reloaded struct {
	Settings
	Options  machine.Options
	Remember string
	// Keys that have changed, by the moment from which they count.
	Now, NextAttempt, NextLaunch []string
}

// socket is the path of the launch's control socket.
func (s Setup) socket() (string, error) {
	if s.Socket != "" {
		return s.Socket, nil
	}
	return s.State.Socket(s.Name)
}
