package supervisor

import (
	"time"

	"sglaunch/internal/history"
	"sglaunch/internal/notify"
	"sglaunch/internal/sglangcmd"
	"sglaunch/internal/statedir"
	"sglaunch/patch"
	"sglaunch/phases"
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
	Hooks   notify.Hooks
	Quiet   bool // no lines of sglaunch's own
	Patches []patch.Patch
	Rules   *phases.RuleSet

	Devices  []string      // UUIDs; empty = from the command
	Starting time.Duration // between two samples while starting
	Serving  time.Duration // and afterwards
	// Health: HTTP is asked in service too; see act = "all".
	Health bool
	// XidReport: an Xid is told and nothing follows from it.
	XidReport bool

	// OnOutput is given every stretch of output before it is interpreted; nil
	// = nobody looks. Tests make a supervisor die of a line with it.
	OnOutput func([]byte)

	State   statedir.Dir
	Keep    history.Keep // of what launches leave behind
	Sampler []string     // argv of the NVML sampler; nil = do not look at GPUs

	command sglangcmd.Command
}

// socket is the path of the launch's control socket.
func (s Setup) socket() (string, error) {
	if s.Socket != "" {
		return s.Socket, nil
	}
	return s.State.Socket(s.Name)
}
