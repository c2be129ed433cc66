package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"sglaunch/internal/container"
	"sglaunch/internal/history"
	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
	"sglaunch/internal/statedir"
	"sglaunch/patch"
	"sglaunch/supervisor/machine"
)

// Healed is what Recover found of one dead launch and did about it.
type Healed struct {
	Launch   string      `json:"launch"`             // "" for files that earlier ones left alone
	Killed   int         `json:"killed"`             // processes ended
	Left     []proc.Proc `json:"left,omitempty"`     // processes that would not go
	Restored []string    `json:"restored,omitempty"` // patched files that are original again
	Drifted  []string    `json:"drifted,omitempty"`  // files that somebody changed or removed since; left alone
	Err      string      `json:"error,omitempty"`

	Originals map[string]string `json:"originals,omitempty"` // of the drifted, by path: where the original is kept
}

// Recover heals what launches left behind whose sglaunch has died, or that have
// ended with processes that would not go: it ends the processes, then restores the
// files that the launches had patched. It touches nothing of a launch that lives.
// `sglaunch recover`, systemd's ExecStartPre= and ExecStopPost=, and every start of a
// launch call it.
func Recover(ctx context.Context, dir statedir.Dir) ([]Healed, error) {
	launches, err := dir.Launches("")
	if err != nil {
		return nil, err
	}
	h := healing{dir: dir, living: map[string]bool{}}
	for _, l := range launches {
		h.launch(ctx, l)
	}
	h.bury(ctx)
	err = h.files(ctx)
	var all []Healed
	for _, found := range h.found {
		all = append(all, *found)
	}
	return all, err
}

// healing is one walk through the launches of a state directory.
type healing struct {
	dir    statedir.Dir
	found  []*Healed
	living map[string]bool // launches with living processes: their files stay
	dead   []LaunchRecord  // those whose end is written now
}

// of is what was found of a launch so far.
func (h *healing) of(id string) *Healed {
	if i := slices.IndexFunc(h.found, func(f *Healed) bool { return f.Launch == id }); i >= 0 {
		return h.found[i]
	}
	found := &Healed{Launch: id}
	h.found = append(h.found, found)
	return found
}

// launch ends what is left of one launch and writes down its end.
func (h *healing) launch(ctx context.Context, l statedir.Launch) {
	h.bringHome(l)
	record, err := ReadLaunchRecord(l.Record())
	ended := !record.Ended.IsZero()
	switch {
	case err != nil:
		h.unread(l, err)
		return
	case ended && !record.mayHaveLeft():
		return
	case record.alive():
		h.living[l.ID] = true
		return
	}
	limit := machine.KillLimit
	if ended {
		limit = lookAgain
	}
	if killed, left := endLaunch(ctx, l, limit); killed > 0 || len(left) > 0 {
		found := h.of(l.ID)
		found.Killed, found.Left = killed, left
		h.living[l.ID] = len(left) > 0
	}
	if h.living[l.ID] || ended {
		return
	}
	record.Ended, record.Code, record.Reason = time.Now(), machine.CodeLater, history.KilledReason
	if err := record.write(l.Record()); err != nil {
		h.of(l.ID).Err = err.Error()
	}
	h.dead = append(h.dead, record)
}

// bringHome takes the end of a launch, which was left elsewhere while its disk failed,
// into its record.
func (h *healing) bringHome(l statedir.Launch) {
	path := endPath(h.dir, l.ID)
	if r, err := ReadLaunchRecord(path); err == nil && r.write(l.Record()) == nil {
		_ = os.Remove(path) // what stays says the same
		h.dead = append(h.dead, r)
	}
}

// unread: of a launch whose record is damaged nobody knows whether sglaunch runs it.
func (h *healing) unread(l statedir.Launch, err error) {
	lives := living(l)
	if len(lives) == 0 || errors.Is(err, fs.ErrNotExist) {
		return
	}
	h.living[l.ID] = true
	h.of(l.ID).Err = fmt.Sprintf("%v; whether sglaunch still runs it is not known, so these are left alone, to be ended by hand where it does not: %s",
		err, strings.Join(lives, ", "))
}

// bury tells the history how dead launches ended. It is a convenience: what
// the history does not take is not worth a word.
func (h *healing) bury(ctx context.Context) {
	if len(h.dead) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, memoryLimit)
	defer cancel()
	db, err := history.Open(ctx, h.dir.History())
	if err != nil {
		return
	}
	defer db.Close() // each record was taken or not
	for _, r := range h.dead {
		l := history.Launch{ID: r.ID, Name: r.Name, Ended: r.Ended, Code: &r.Code, Reason: r.Reason}
		if db.RecordLaunch(ctx, l) != nil {
			return
		}
	}
}

// files restores what dead launches had patched.
func (h *healing) files(ctx context.Context) error {
	ledger, err := patch.OpenLedger(h.dir.Patches())
	if err != nil {
		return err
	}
	reverted, err := ledger.Recover(ctx, func(o patch.Owner) bool {
		return h.living[o.Launch] || o.BootID == proc.BootID() && proc.Alive(proc.ID{PID: o.PID, Start: o.StartTime})
	})
	for _, r := range reverted {
		if len(r.Restored)+len(r.Drifted) > 0 {
			found := h.of(r.Launch)
			found.Restored, found.Drifted, found.Originals = r.Restored, r.Drifted, r.Originals
		}
	}
	return err
}

// alive reports whether the shim of a launch still runs.
func (r LaunchRecord) alive() bool {
	return r.Boot == proc.BootID() && proc.Alive(proc.ID{PID: r.Shim.PID, Start: r.Shim.Start})
}

// Killed reports whether sglaunch of a launch has died before it could write down
// how that ended, which Recover does for it.
func Killed(dir statedir.Dir, l statedir.Launch) bool {
	r, err := readRecord(dir, l)
	return err == nil && r.Ended.IsZero() && !r.alive()
}

// lookAgain bounds another kill of processes that have outlived one.
const lookAgain = 2 * time.Second

// mayHaveLeft reports whether a launch has ended with processes that would not go:
// they may live still, and may go by now.
func (r LaunchRecord) mayHaveLeft() bool {
	return r.Code == machine.CodeHeld && r.Boot == proc.BootID()
}

// living names the processes of all attempts of a launch.
func living(l statedir.Launch) (names []string) {
	attempts, err := l.Attempts()
	if err != nil {
		return nil
	}
	for _, a := range attempts {
		members, _ := proc.Members(membership(l, a, false)) // whoever is seen counts
		for _, p := range members {
			names = append(names, fmt.Sprintf("process %d (%s)", p.PID, p.Comm))
		}
	}
	return names
}

// endLaunch ends what is left of every attempt of a launch.
func endLaunch(ctx context.Context, l statedir.Launch, limit time.Duration) (killed int, left []proc.Proc) {
	attempts, err := l.Attempts()
	if err != nil {
		return 0, nil
	}
	for _, a := range attempts {
		if err := endContainer(ctx, a); err != nil {
			left = append(left, proc.Proc{Comm: err.Error()})
		}
		m := membership(l, a, false)
		members, err := proc.Members(m)
		if err != nil || len(members) == 0 {
			m.Cgroup.Remove()
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		_, rest := proc.KillAll(ctx, m)
		cancel()
		killed += len(members) - len(rest)
		left = append(left, rest...)
	}
	return killed, left
}

// endContainer ends the container of an attempt, where it had one.
func endContainer(ctx context.Context, a statedir.Attempt) error {
	ctx, cancel := context.WithTimeout(ctx, machine.KillLimit)
	defer cancel()
	return container.End(ctx, a.Path)
}

// membership says who belongs to an attempt whose shim is gone: whoever was
// recorded, what descends from them or shares their sessions, whoever carries
// the attempt's marker, and all of its cgroup. fresh: the shim died just now.
func membership(l statedir.Launch, a statedir.Attempt, fresh bool) proc.Membership {
	records, err := proc.ReadRecords(a.Processes())
	if err != nil {
		records = nil // the other signs are what is left
	}
	m := proc.MembershipOf(records, markerOf(l, a.N), fresh)
	m.Cgroup = proc.NotedCgroup(a.Processes())
	return m
}

// heal ends and undoes first what a dead sglaunch left behind: the new launch
// would meet its processes on the GPUs and its patches in the files.
func heal(conn *wire.Conn, s Setup) error {
	ctx, cancel := context.WithTimeout(context.Background(), machine.PatchLimit)
	defer cancel()
	healed, err := Recover(ctx, s.State)
	for _, h := range healed {
		whose := "launch " + h.Launch
		if h.Launch == "" {
			whose = "earlier launches"
		}
		text := fmt.Sprintf("sglaunch: healed what %s left behind: %d processes ended, %d files restored",
			whose, h.Killed, len(h.Restored))
		for _, p := range h.Left {
			text += fmt.Sprintf("; process %d (%s) would not go: %s", p.PID, p.Comm, proc.Condition(p))
		}
		if s.Quiet || h.Killed+len(h.Restored)+len(h.Left) == 0 { // it only was not written down that it had ended
			continue
		}
		if err := conn.Send(wire.Message{Type: wire.Print, Text: text}); err != nil {
			return err
		}
	}
	if errors.Is(err, patch.ErrDrifted) { // told, and no obstacle: a plan refuses the file if it is needed
		return conn.Send(wire.Message{Type: wire.Print, Text: "sglaunch: " + err.Error()})
	}
	if err != nil {
		return fmt.Errorf("cannot restore what an earlier launch had patched: %w", err)
	}
	return nil
}
