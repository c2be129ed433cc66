package detach

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Kind is who a launch is handed to.
type Kind string

// The kinds of a Way.
const (
	System  Kind = "system"  // a service of the system's manager
	User    Kind = "user"    // a service of the user's manager
	Session Kind = "session" // nobody: a session of its own
)

// Host is what decides on the way.
type Host struct {
	UID     int
	User    string // its name
	Runtime string // $XDG_RUNTIME_DIR; "" = none
	Root    string // of the file system; "" = "/"
}

// Way is how a launch is started that outlives the session.
type Way struct {
	Kind Kind
	host Host
}

// Choose finds the way that this machine offers.
func Choose(h Host) Way {
	_, err := exec.LookPath("systemd-run")
	switch {
	case err != nil || !h.exists("/run/systemd/system"):
	case h.UID == 0:
		return Way{System, h}
	case h.Runtime != "" && h.exists(h.Runtime+"/systemd/private"):
		return Way{User, h}
	}
	return Way{Session, h}
}

// Launch is what is started.
type Launch struct {
	Name    string
	Program string // sglaunch itself
	Args    []string
	Dir     string
	Env     []string
	Stop    time.Duration // that its end may take
	Log     string        // of a session of its own: where sglaunch's own lines go
	Folder  string        // for the handover
	// Handed is the word of Program that takes a handover.
	Handed string
	// Recover is the word of Program that heals what a killed one left.
	Recover string
}

// Unit is the name of the launch's service.
func Unit(name string) string { return "sglaunch-run-" + name + ".service" }

// Start starts the launch. What it returns tells whether the launch has ended
// since.
func (w Way) Start(ctx context.Context, l Launch) (ended func() bool, err error) {
	if w.Kind == Session {
		return startSession(l)
	}
	path, err := Handover{Args: l.Args, Dir: l.Dir, Env: l.Env}.Write(l.Folder)
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "systemd-run", w.words(l, path)...).CombinedOutput()
	if err != nil {
		_ = os.Remove(path)
		return nil, fmt.Errorf("cannot start the service %s: %w: %s", Unit(l.Name), err, strings.TrimSpace(string(out)))
	}
	return func() bool { return w.serviceEnded(ctx, l.Name) }, nil
}

// words are those of systemd-run. What sglaunch needs of a service is said in the
// unit that "sglaunch unit" prints; here is what a transient one can have.
func (w Way) words(l Launch, handover string) []string {
	words := []string{"--quiet", "--collect", "--no-block", "--unit=" + Unit(l.Name), "--description=SGLang server " + l.Name + ", kept by sglaunch"}
	if w.Kind == User {
		words = append(words, "--user")
	}
	properties := []string{
		"Type=notify", "NotifyAccess=main", "KillMode=mixed", "Delegate=yes", "OOMPolicy=continue", "TasksMax=infinity",
		"TimeoutStartSec=infinity", fmt.Sprintf("TimeoutStopSec=%d", int(l.Stop.Seconds())+1), "LimitCORE=0",
		"LogRateLimitIntervalSec=0", "SyslogIdentifier=sglaunch-" + l.Name, "ExecStopPost=-" + quoted(l.Program) + " " + l.Recover,
	}
	if w.Kind == System { // a user's manager cannot raise them
		properties = append(properties, "LimitNOFILE=1048576", "LimitMEMLOCK=infinity")
	}
	for _, p := range properties {
		words = append(words, "--property="+p)
	}
	for _, kv := range l.Env { // where the records are; nothing else, since anybody can read it
		if name, _, _ := strings.Cut(kv, "="); name == "HOME" || name == "XDG_STATE_HOME" || strings.HasPrefix(name, "SGLAUNCH_") {
			words = append(words, "--setenv="+kv)
		}
	}
	return append(words, "--", l.Program, l.Handed, handover)
}

// quoted is a path as a word of a unit's command.
func quoted(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$").Replace(path) + `"`
}

// startSession starts the launch in a session of its own, with no terminal and
// nothing of ours open. It is adopted by whoever adopts orphans once we end.
func startSession(l Launch) (ended func() bool, err error) {
	log, err := os.OpenFile(l.Log, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot keep the lines of a detached launch: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(l.Program, l.Args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = l.Dir, l.Env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the launch: %w", err)
	}
	over := make(chan struct{})
	go func() { _ = cmd.Wait(); close(over) }()
	return func() bool {
		select {
		case <-over:
			return true
		default:
			return false
		}
	}, nil
}

// serviceEnded reports whether the service has no process and none on its way.
func (w Way) serviceEnded(ctx context.Context, name string) bool {
	words := []string{"show", "--property=ActiveState", "--property=Job", Unit(name)}
	if w.Kind == User {
		words = append([]string{"--user"}, words...)
	}
	out, err := exec.CommandContext(ctx, "systemctl", words...).Output()
	return err == nil && over(string(out))
}

// over reads the properties that systemctl shows. A unit without a job has no such
// line, or, as systemd 252 prints it, one without a value.
func over(shown string) bool {
	state := ""
	for line := range strings.Lines(shown) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), "="); {
		case name == "ActiveState":
			state = value
		case name == "Job" && value != "":
			return false
		}
	}
	return state == "failed" || state == "inactive"
}
