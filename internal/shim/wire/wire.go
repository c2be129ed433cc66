// Package wire is the versioned protocol between the shim and the supervisor.
//
// One stream socket, frames of [4 bytes length][1 byte kind][payload], big
// endian. Control frames hold one JSON Message; output frames hold raw bytes,
// so that the server's output is never escaped on its way to the rules.
//
// An old shim must serve a new supervisor (upgrade in place), so fields are
// only ever added, and an unknown message type is ignored by its receiver.
package wire

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Version of the protocol. A supervisor refuses a shim whose major differs.
const Version = 1

// FD is the descriptor number at which the supervisor finds its end of the
// socket when the shim starts it.
const FD = 3

// Types of messages, supervisor to shim.
const (
	Adopt   = "adopt"   // Launch: this is the launch; remember it for the next supervisor
	Spawn   = "spawn"   // Spec: start the server of an attempt
	Stream  = "stream"  // Attempt, From: send output from this offset on, then live, then Drained
	Reading = "reading" // From, To: about to interpret this stretch (so that a deadly one is known)
	Read    = "read"    // To: done with everything before this offset
	Signal  = "signal"  // Attempt, Sig, Scope
	Kill    = "kill"    // Attempt, Limit: SIGKILL everything of the attempt until it is gone; answered by TreeGone or TreeLeft
	Print   = "print"   // Text: one line of sglaunch's own, to standard error at a line boundary
	Quiet   = "quiet"   // Off: Print lines are not shown from now on; else they are again
	Lease   = "lease"   // Text: what is patched right now and must be reverted ("" = nothing)
	Ledger  = "ledger"  // Text: what the next supervisor is to be given (opaque)
	Replace = "replace" // Text: a program; whoever says so ends by itself, and the next supervisor is that program
	Notify  = "notify"  // Text: states for systemd ("READY=1\nSTATUS=..."), passed on as they are
	Pong    = "pong"    // the answer to Ping, by the loop that decides
	Finish  = "finish"  // Code, Text: end the launch with this exit code; the socket closes once nothing of the attempt lives and its output is drained
)

// Types of messages, shim to supervisor.
const (
	Welcome     = "welcome"      // first, once: Hello
	Spawned     = "spawned"      // Attempt, Proc
	SpawnFailed = "spawn_failed" // Attempt, Text
	Member      = "member"       // Attempt, Proc: a descendant seen for the first time
	Exited      = "exited"       // Attempt, Status: the server itself has ended
	Drained     = "drained"      // Attempt, To: the end of a Stream, no more output; Cut: bytes may be missing, a descendant held the terminal
	TreeGone    = "tree_gone"    // Attempt: no process of the attempt is left
	TreeLeft    = "tree_left"    // Attempt, Procs: these would not go
	Gap         = "gap"          // Attempt, From, To: output that neither memory nor disk holds
	Asked       = "asked"        // Sig: a signal that reached the shim and concerns the launch
	Trouble     = "trouble"      // Text: the shim's own news: log disk full, terminal blocked
	Ping        = "ping"         // are you there? A supervisor that has answered once and does not any more is replaced
	Suspended   = "suspended"    // Ctrl-Z: server, supervisor and shim are being stopped
	Resumed     = "resumed"      // they go on; time has passed in which nothing could move
)

// AsideVar is in the environment of the supervisor and of what that starts, with the
// pid of the shim: what it starts becomes the shim's orphan when it dies, and is not
// of the attempt.
const AsideVar = "SGLAUNCH_ASIDE"

// AsideMark is that variable, set by a shim.
func AsideMark(shim int) string { return fmt.Sprintf("%s=%d", AsideVar, shim) }

// Scopes of a Signal.
const (
	ScopeLeader = "leader" // the server's first process
	ScopeGroup  = "group"  // its process group
	ScopeTree   = "tree"   // every living descendant
)

// Proc names one process beyond doubt: pids are reused, (pid, start) is not.
type Proc struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // field 22 of /proc/PID/stat, clock ticks since boot
	PPID  int    `json:"ppid,omitempty"`
	Comm  string `json:"comm,omitempty"`
	Cmd   string `json:"cmd,omitempty"` // command line, masked and bounded
	State string `json:"state,omitempty"`
}

// Status is how a process ended: an exit code, or a signal.
type Status struct {
	Code   int  `json:"code"`
	Signal int  `json:"signal,omitempty"` // 0 = it exited by itself
	Core   bool `json:"core,omitempty"`
}

func (s Status) String() string {
	if s.Signal != 0 {
		return fmt.Sprintf("signal %d (%s)", s.Signal, unix.SignalName(syscall.Signal(s.Signal)))
	}
	return fmt.Sprintf("exit status %d", s.Code)
}

// Launch tells which launch a shim serves.
type Launch struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Dir  string `json:"dir"` // its folder in the state directory
}

// Spec says how to start the server of one attempt.
type Spec struct {
	Attempt int      `json:"attempt"`
	Argv    []string `json:"argv"`
	Dir     string   `json:"dir"`
	Env     []string `json:"env"`
	Stdio   string   `json:"stdio"` // pty | pipe
	Stdin   string   `json:"stdin"` // auto | null | inherit
	Log     string   `json:"log"`   // raw log file, created 0600; must not exist
	Rotate  *Rotate  `json:"rotate,omitempty"`
	Errors  string   `json:"errors"`  // with pipe: raw log of standard error; "" = into Log too
	Records string   `json:"records"` // process records, JSON lines of proc.Record
	Marker  string   `json:"marker"`  // NAME=value put into the environment, inherited by descendants
	Drain   Duration `json:"drain"`   // how long output may still come after the tree's end
}

// Rotate bounds one part of the raw log and how many parts are kept beside the
// one that is written. Zero bounds nothing.
type Rotate struct {
	Size int64    `json:"size,omitempty"` // bytes
	Age  Duration `json:"age,omitempty"`
	Keep int      `json:"keep,omitempty"`
}

// Range is a stretch of an attempt's output, [From, To).
type Range struct {
	Attempt int   `json:"attempt"`
	From    int64 `json:"from"`
	To      int64 `json:"to"`
}

// Hello is what a starting supervisor is told: the facts that may never be
// wrong, kept by the shim over every death of the supervisor.
type Hello struct {
	Version  int       `json:"version"`
	PID      int       `json:"pid"` // of the shim
	Start    uint64    `json:"start"`
	Restarts int       `json:"restarts"` // supervisors that died before this one
	Launch   *Launch   `json:"launch,omitempty"`
	Attempt  int       `json:"attempt"` // the newest; 0 = none was spawned
	Server   *Proc     `json:"server,omitempty"`
	Exited   *Status   `json:"exited,omitempty"` // of the newest attempt
	TreeGone bool      `json:"tree_gone"`        // of the newest attempt
	Drained  bool      `json:"drained"`
	Output   int64     `json:"output"`             // bytes of output so far, newest attempt
	Terminal bool      `json:"terminal,omitempty"` // the launch belongs to a terminal: with it, it ends
	Asked    []int     `json:"asked,omitempty"`
	Granted  bool      `json:"granted,omitempty"` // asked so, the shim itself has ended the newest attempt
	Lease    string    `json:"lease,omitempty"`
	Ledger   string    `json:"ledger,omitempty"`
	Suspect  *Range    `json:"suspect,omitempty"` // the last supervisor died while interpreting this
	Skip     []Range   `json:"skip,omitempty"`    // twice deadly: do not interpret
	Time     time.Time `json:"time"`
}

// Message is a control frame.
type Message struct {
	Type    string   `json:"type"`
	Attempt int      `json:"attempt,omitempty"`
	Launch  *Launch  `json:"launch,omitempty"`
	Spec    *Spec    `json:"spec,omitempty"`
	Hello   *Hello   `json:"hello,omitempty"`
	Proc    *Proc    `json:"proc,omitempty"`
	Procs   []Proc   `json:"procs,omitempty"`
	Status  *Status  `json:"status,omitempty"`
	Sig     int      `json:"sig,omitempty"`
	Scope   string   `json:"scope,omitempty"`
	From    int64    `json:"from,omitempty"`
	To      int64    `json:"to,omitempty"`
	Cut     bool     `json:"cut,omitempty"`
	Off     bool     `json:"off,omitempty"`
	Code    int      `json:"code,omitempty"`
	Text    string   `json:"text,omitempty"`
	Limit   Duration `json:"limit,omitempty"`
	// At is when the sender learnt the fact.
	At time.Time `json:"at,omitzero"`
}

// Output is a stretch of the server's output.
type Output struct {
	Attempt int
	Offset  int64
	Data    []byte
}

// Duration is a time.Duration that JSON shows as text.
type Duration time.Duration

// MarshalText writes Go's form, "1m30s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads Go's form.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}
