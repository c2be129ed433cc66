package proc

// Side tells whose a descendant is.
type Side int8

// Sides of a process below the root of a Tree.
const (
	Foreign Side = iota // not below the root
	Ours                // of the attempt
	Aside               // below the root, but another's: the supervisor and what it started
)

// Tree follows everything below one process that is a child subreaper. It is
// made for a look every second over months: a pid is read once, when it first
// appears, and after that only members are read again. Not for several
// goroutines.
type Tree struct {
	root int
	// judge decides about a child of the root: one that the root started, or
	// one that lost its parents before anybody saw them.
	judge func(Proc) Side
	seen  map[int]mark

	newest   int  // pid that the kernel had given out last, at the last full look
	complete bool // that look saw and placed everybody
}

type mark struct {
	side Side
	proc Proc // of members only
}

// NewTree follows the descendants of root. judge is asked once for each process
// that is first seen as a child of root.
func NewTree(root int, judge func(Proc) Side) *Tree {
	return &Tree{root: root, judge: judge, seen: map[int]mark{}}
}

// Scan looks once. Born are the members of ours seen for the first time, died
// the members that are gone or dead. Where the kernel has given out no pid since
// the last look nobody can have been born, and only members are read.
func (t *Tree) Scan() (born []Proc, died []ID, err error) {
	died = t.recheck()
	if now := newestPID(); t.complete && now != 0 && now == t.newest {
		return nil, died, nil
	}
	t.forgetReused()
	fresh, here := Table{}, map[int]bool{}
	known := func(pid int) bool {
		here[pid] = true
		_, seen := t.seen[pid]
		return seen || pid == t.root
	}
	t.newest, t.complete, err = sweep(known, func(p Proc) { fresh[p.PID] = p })
	if err != nil {
		return nil, died, err
	}
	for _, p := range fresh {
		side, sure := t.place(p, fresh, 0)
		if sure && side == Ours {
			born = append(born, p)
		}
		if !sure && !p.Dead() {
			t.complete = false
		}
	}
	for pid, m := range t.seen {
		if m.side == Foreign && !here[pid] && fresh[pid].PID == 0 {
			delete(t.seen, pid)
		}
	}
	sortProcs(born)
	return born, died, nil
}

// Complete reports whether the last scan saw everybody: then no member lives
// that Members does not name.
func (t *Tree) Complete() bool { return t.complete }

// recheck reads the members again and forgets who has ended.
func (t *Tree) recheck() (died []ID) {
	for pid, m := range t.seen {
		if m.side == Foreign {
			continue
		}
		now, err := Identify(pid)
		if err == nil && now.Start == m.proc.Start && !now.Dead() {
			t.seen[pid] = mark{m.side, now}
			continue
		}
		if delete(t.seen, pid); m.side == Ours {
			died = append(died, m.proc.ID)
		}
	}
	return died
}

// forgetReused forgets strangers whose pids may be another's by now: those that
// the kernel has given out since the last look.
func (t *Tree) forgetReused() {
	now := newestPID()
	for pid, m := range t.seen {
		given := t.newest < pid && pid <= now
		if now < t.newest { // the numbers began anew
			given = pid > t.newest || pid <= now
		}
		if m.side == Foreign && given {
			delete(t.seen, pid)
		}
	}
}

// place decides on which side a process seen for the first time stands. Unsure
// means that it was caught while its parents were ending: the next look decides.
func (t *Tree) place(p Proc, fresh Table, depth int) (side Side, sure bool) {
	if m, known := t.seen[p.PID]; known {
		return m.side, true
	}
	if side, sure = t.sideOfParent(p, fresh, depth); sure {
		t.Put(p, side)
	}
	return side, sure
}

// deepest bounds the chain of unseen parents that one look follows.
const deepest = 1000

func (t *Tree) sideOfParent(p Proc, fresh Table, depth int) (side Side, sure bool) {
	parent, isFresh := fresh[p.PPID]
	m, known := t.seen[p.PPID]
	switch {
	case p.Dead() || depth > deepest:
		return Foreign, false
	case p.PPID == t.root:
		return t.judge(p), true
	case known:
		return m.side, true
	case p.PPID == 0:
		return Foreign, true
	case isFresh && !parent.Dead():
		return t.place(parent, fresh, depth+1)
	}
	// The parent ended between two readings: by now the process has another.
	again, err := Identify(p.PID)
	if err != nil || again.PPID == p.PPID {
		return Foreign, false
	}
	return t.sideOfParent(again, fresh, depth+1)
}

// Members returns the living members of one side as the last scan saw them.
func (t *Tree) Members(side Side) []Proc {
	var members []Proc
	for _, m := range t.seen {
		if m.side == side {
			members = append(members, m.proc)
		}
	}
	sortProcs(members)
	return members
}

// Put places a process that the root has just started, before any scan can
// meet it.
func (t *Tree) Put(p Proc, side Side) {
	m := mark{side: side}
	if side != Foreign { // of which a big machine has thousands
		m.proc = p
	}
	t.seen[p.PID] = m
}
