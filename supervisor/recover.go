package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
// files that the launches had patched. It touches nothing of a launch that lives. `sglaunch recover`, systemd's ExecStartPre=
// and ExecStopPost=, and every start of a launch call it.
func Recover(ctx context.Context, dir statedir.Dir) ([]Healed, error) {
	launches, err := dir.Launches("")
	if err != nil {
		return nil, err
	}
	healed := map[string]*Healed{}
	var order []string
	note := func(id string) *Healed {
		if healed[id] == nil {
			healed[id] = &Healed{Launch: id}
			order = append(order, id)
		}
		return healed[id]
	}
	stuck := map[string]bool{} // launches with living processes: their files stay
	var dead []LaunchRecord
	for _, l := range launches {
		record, err := ReadLaunchRecord(l.Record())
		switch {
		case err != nil:
			if lives := living(l); len(lives) > 0 && !errors.Is(err, fs.ErrNotExist) {
				stuck[l.ID] = true
				note(l.ID).Err = fmt.Sprintf("%v; whether sglaunch still runs it is not known, so these are left alone, to be ended by hand where it does not: %s",
					err, strings.Join(lives, ", "))
			}
			continue
		case !record.Ended.IsZero() && !record.mayHaveLeft():
			continue
		case record.alive():
			stuck[l.ID] = true
			continue
		}
		limit := machine.KillLimit
		if !record.Ended.IsZero() {
			limit = lookAgain
		}
		if killed, left := endLaunch(ctx, l, limit); killed > 0 || len(left) > 0 {
			h := note(l.ID)
			h.Killed, h.Left = killed, left
			stuck[l.ID] = len(left) > 0
		}
		if !stuck[l.ID] && record.Ended.IsZero() {
			record.Ended, record.Code, record.Reason = time.Now(), machine.CodeLater, history.KilledReason
			if err := record.write(l.Record()); err != nil {
				note(l.ID).Err = err.Error()
			}
			dead = append(dead, record)
		}
	}
	bury(ctx, dir, dead)
	return collect(ctx, dir, stuck, note, &order, healed)
}

// bury tells the history how dead launches ended. It is a convenience: what
// the history does not take is not worth a word.
func bury(ctx context.Context, dir statedir.Dir, dead []LaunchRecord) {
	if len(dead) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, memoryLimit)
	defer cancel()
	db, err := history.Open(ctx, dir.History())
	if err != nil {
		return
	}
	defer db.Close() // each record was taken or not
	for _, r := range dead {
		l := history.Launch{ID: r.ID, Name: r.Name, Ended: r.Ended, Code: &r.Code, Reason: r.Reason}
		if db.RecordLaunch(ctx, l) != nil {
			return
		}
	}
}

func collect(ctx context.Context, dir statedir.Dir, stuck map[string]bool, note func(string) *Healed,
	order *[]string, healed map[string]*Healed) ([]Healed, error) {
	ledger, err := patch.OpenLedger(dir.Patches())
	if err != nil {
		return nil, err
	}
	reverted, err := ledger.Recover(ctx, func(o patch.Owner) bool {
		return stuck[o.Launch] || o.BootID == proc.BootID() && proc.Alive(proc.ID{PID: o.PID, Start: o.StartTime})
	})
	for _, r := range reverted {
		if len(r.Restored)+len(r.Drifted) > 0 {
			h := note(r.Launch)
			h.Restored, h.Drifted, h.Originals = r.Restored, r.Drifted, r.Originals
		}
	}
	var all []Healed
	for _, id := range *order {
		all = append(all, *healed[id])
	}
	return all, err
}

// alive reports whether the shim of a launch still runs.
func (r LaunchRecord) alive() bool {
	return r.Boot == proc.BootID() && proc.Alive(proc.ID{PID: r.Shim.PID, Start: r.Shim.Start})
}

// Killed reports whether sglaunch of a launch has died before it could write down
// how that ended, which Recover does for it.
func Killed(l statedir.Launch) bool {
	r, err := ReadLaunchRecord(l.Record())
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
