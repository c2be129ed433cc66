package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"sglaunch/internal/proc"
	"sglaunch/internal/serve"
	"sglaunch/internal/shim/wire"
	"sglaunch/internal/statedir"
	"sglaunch/patch"
)

// ErrNoLaunch says that nothing is known of a launch of that name.
var ErrNoLaunch = errors.New("no launch of that name is known")

// Outside is a launch as another process sees it.
type Outside struct {
	Name   string
	Socket string
	Shim   proc.ID // zero: it does not live
}

// Living lists the launches whose shim lives, by name.
func Living(dir statedir.Dir) ([]Outside, error) {
	entries, err := os.ReadDir(dir.Runtime)
	if err != nil {
		return nil, fmt.Errorf("cannot list the launches: %w", err)
	}
	names := map[string]bool{}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), lockSuffix); ok {
			names[name] = true
		}
	}
	launches, _ := dir.Launches("") // where none was ever recorded there are locks at most
	for _, l := range launches {
		names[l.Name()] = true
	}
	var all []Outside
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if o := Find(dir, name); o.Shim.PID != 0 {
			all = append(all, o)
		}
	}
	return all, nil
}

// Find looks a launch up by its name; it may be one that does not live.
func Find(dir statedir.Dir, name string) Outside {
	o := Outside{Name: name}
	o.Socket, _ = dir.Socket(name) // a path that is too long is told by whoever asks there
	var h holder
	if data, err := os.ReadFile(lockPath(dir, name)); err == nil {
		_ = json.Unmarshal(data, &h) // half a file is none
	}
	if !h.alive() {
		if h = orUnlocked(h, dir, name); !h.alive() {
			return o
		}
	}
	o.Shim = proc.ID{PID: h.Shim.PID, Start: h.Shim.Start}
	if h.Socket != "" {
		o.Socket = h.Socket
	}
	return o
}

// Look asks a launch for its status. Where it does not answer, what can be
// seen from outside is the status: which of shim, supervisor and server live,
// or how it ended. ctx bounds the asking.
func Look(ctx context.Context, dir statedir.Dir, o Outside) (serve.Status, error) {
	st, err := serve.Ask(ctx, o.Socket, serve.Request{Do: serve.DoStatus})
	if err == nil && st != nil {
		return *st, nil
	}
	seen := serve.Status{V: serve.Version, Time: time.Now(), Launch: o.Name, Event: serve.EventStatus}
	if o.Shim.PID != 0 {
		lookAtProcesses(&seen, o.Shim.PID)
		if seen.State == serve.StateSilent {
			seen.Text = whyUnheard(o.Socket)
		}
		_ = lookAtRecords(&seen, dir, o.Name) // its records may lie elsewhere: [log] directory
		return seen, nil
	}
	seen.State = serve.StateEnded
	return seen, lookAtRecords(&seen, dir, o.Name)
}

// waitsForReader is what keeps a shim whose supervisor has written down the end.
const waitsForReader = "sglaunch waits for whoever reads its output; a signal to end cuts that short"

// lookAtProcesses tells the three apart: the supervisor is the shim's child
// that carries the shim's mark, the server any other.
func lookAtProcesses(st *serve.Status, shim int) {
	st.State, st.Processes.Shim = serve.StateBlind, shim
	st.Text = "no supervisor lives: the server is kept and not watched"
	below, err := proc.Descendants(shim)
	if err != nil {
		return
	}
	slices.SortFunc(below, func(a, b proc.Proc) int { return int(a.Start) - int(b.Start) })
	mark := wire.AsideMark(shim)
	for _, p := range below {
		switch aside := proc.HasEnv(p.PID, mark); {
		case p.Dead():
		case aside && p.PPID == shim && st.Processes.Supervisor == 0:
			st.Processes.Supervisor, st.State = p.PID, serve.StateSilent
		case aside:
		default:
			if p.PPID == shim && st.Processes.Server == 0 {
				st.Processes.Server = p.PID
			}
			st.Processes.Members++
		}
	}
	if st.State == serve.StateBlind && st.Processes.Members == 0 {
		st.Text = "neither a supervisor nor a server lives"
	}
}

// whyUnheard says why a supervisor that lives gave no answer: it may never have
// been asked.
func whyUnheard(socket string) string {
	switch info, err := os.Stat(socket); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("the supervisor lives; its control socket %q is not there", socket)
	case err == nil && info.Mode().Type() != fs.ModeSocket:
		return fmt.Sprintf("the supervisor lives; its control socket %q is no socket", socket)
	}
	return "the supervisor lives and does not answer"
}

// lookAtRecords adds what the newest launch of that name has written down. One
// whose shim died without an end is dead: what is left of it is counted.
func lookAtRecords(st *serve.Status, dir statedir.Dir, name string) error {
	launches, err := dir.Launches(name)
	if err != nil {
		return err
	}
	if len(launches) == 0 {
		return fmt.Errorf("cannot find %q: %w", name, ErrNoLaunch)
	}
	l := launches[len(launches)-1]
	r, err := readRecord(dir, l)
	if errors.Is(err, fs.ErrNotExist) && st.State == serve.StateEnded {
		st.ID, st.Dir, st.Began = l.ID, l.Path, l.Began()
		st.Text = "it never started: its first record was not written"
		return nil
	}
	if err != nil {
		return err
	}
	st.ID, st.Dir, st.Began, st.Command = r.ID, l.Path, r.Time, r.Command
	if attempts, err := l.Attempts(); err == nil && len(attempts) > 0 {
		st.Attempt = attempts[len(attempts)-1].N
	}
	if st.State == serve.StateBlind && !r.Ended.IsZero() { // its supervisor left in order
		st.State, st.Text = serve.StateEnded, waitsForReader
	}
	switch {
	case st.State != serve.StateEnded:
	case !r.Ended.IsZero():
		st.Exit = &serve.Exit{Time: r.Ended, Code: r.Code, Reason: r.Reason}
	default:
		st.State = serve.StateDead
		living := livingOf(l, st.Attempt)
		st.Processes.Members = len(living)
		st.Text = remains(lastWord(l, st.Attempt), living, patchedBy(dir, l.ID))
	}
	return nil
}

// lastWord is how a launch ended whose shim died before its supervisor: that one has
// cleared away what it could. Where both died at once nobody had the time for it.
func lastWord(l statedir.Launch, attempt int) string {
	word := "sglaunch was killed"
	eachEvent(l.Attempt(attempt).Events(), func(e envelope) {
		if e.Event == "launch_ended" {
			word = e.Text
		}
	})
	return word
}

// remains says what is left of a launch that has no end yet, and what clears it away.
func remains(why string, living []proc.Proc, patched []string) string {
	text := why + "; no process of the server is left"
	if n := len(living); n > 0 {
		p := living[0]
		text = fmt.Sprintf("%s; of the server there is left process %d (%s): %s", why, p.PID, p.Comm, proc.Condition(p))
		if n > 1 {
			text += fmt.Sprintf(", and %d more", n-1)
		}
	}
	if len(patched) > 0 {
		text += fmt.Sprintf("; still patched: %s", strings.Join(patched, ", "))
	}
	return text + "; `sglaunch recover` ends processes, restores files and writes down the end"
}

// patchedBy lists the files that hold the patches of a launch and would not
// keep them, had it ended in order.
func patchedBy(dir statedir.Dir, launch string) (paths []string) {
	ledger, err := patch.OpenLedger(dir.Patches())
	if err != nil {
		return nil
	}
	held, err := ledger.Status()
	if err != nil {
		return nil
	}
	for _, f := range held {
		ours := slices.ContainsFunc(f.Launches, func(o patch.Owner) bool { return o.Launch == launch })
		if ours && !f.Kept && f.State != patch.Pristine {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// livingOf lists the recorded processes of an attempt that live, the oldest first.
func livingOf(l statedir.Launch, attempt int) (living []proc.Proc) {
	records, err := proc.ReadRecords(l.Attempt(attempt).Processes())
	if err != nil {
		return nil
	}
	for _, r := range records {
		if p, err := proc.Identify(r.PID); err == nil && p.ID == r.ID() && !p.Dead() {
			living = append(living, p)
		}
	}
	return living
}
