package proc

import (
	"errors"
	"os"
	"slices"
)

// Membership says which processes belong together. A process belongs by any
// one sign, and everything below a member belongs too.
type Membership struct {
	// Recorded were seen as members; the start time makes it certain.
	Recorded []ID
	// Roots: everything below these belongs, they themselves do not.
	Roots []ID
	// Groups and Sessions belong as a whole. The caller vouches that they still
	// are what they were: a number whose last member has ended may be reused. A
	// session with a verified member belongs without being named here.
	Groups, Sessions []int
	// Marker is NAME=value in the environment of members.
	Marker string
	// Cgroup was made for the members; nil: none was.
	Cgroup *Cgroup
	// Exclude, and everything below these, never belongs.
	Exclude []ID
}

// hunt is the search for members over several looks. It remembers what it has
// verified: a member whose parent has ended meanwhile stays a member.
type hunt struct {
	Membership
	known    map[ID]bool
	unmarked map[ID]bool // have said that they do not carry the marker
	mute     map[ID]int  // how often one did not answer
	sessions map[int]bool
	newest   int // pid that the kernel had given out last
	own      int // our session: never taken as a whole
}

func newHunt(m Membership) *hunt {
	h := &hunt{
		Membership: m, known: map[ID]bool{}, unmarked: map[ID]bool{}, mute: map[ID]int{}, sessions: setOf(m.Sessions),
	}
	for _, id := range m.Recorded {
		h.known[id] = true
	}
	if self, err := Identify(os.Getpid()); err == nil {
		h.own = self.Session
	}
	return h
}

// Members returns the living members, by pid.
func Members(m Membership) ([]Proc, error) {
	members, _, err := newHunt(m).look()
	return members, err
}

func (h *hunt) look() (members []Proc, complete bool, err error) {
	table, newest, complete, err := lookAll()
	if err != nil {
		return nil, false, err
	}
	if newest < h.newest { // the numbers began anew: one of a session seen before may be another's
		h.sessions = setOf(h.Sessions)
	}
	h.newest = newest
	spared := spared(table, h.Exclude)
	groups := setOf(h.Groups)
	roots := map[int]bool{}
	for _, id := range h.Roots {
		roots[id.PID] = table[id.PID].Start == id.Start
	}
	enclosed := map[ID]bool{}
	for _, p := range h.Cgroup.Members() {
		enclosed[p.ID] = true
	}
	ours := map[int]Proc{}
	take := func(p Proc) {
		ours[p.PID] = p
		h.known[p.ID] = true
		if p.Session != h.own && p.Session > 0 {
			h.sessions[p.Session] = true
		}
	}
	for _, p := range table {
		if spared[p.PID] {
			continue
		}
		marked, sure := h.hasMarker(p)
		if marked || enclosed[p.ID] || h.known[p.ID] || groups[p.Group] {
			take(p)
		}
		complete = complete && sure
	}
	for grown := true; grown; {
		grown = false
		for _, p := range table {
			_, in := ours[p.PID]
			_, child := ours[p.PPID]
			if !in && !spared[p.PID] && (child || roots[p.PPID] || h.sessions[p.Session]) {
				take(p)
				grown = true
			}
		}
	}
	return living(ours), complete, nil
}

// spared are the processes that must never be touched: ourselves, all above
// us, the kernel's, and what is excluded with all below it.
func spared(table Table, exclude []ID) map[int]bool {
	spared := map[int]bool{1: true}
	for p, ok := table[os.Getpid()]; ok && !spared[p.PID]; p, ok = table[p.PPID] {
		spared[p.PID] = true
	}
	var below []int
	if kernel := table[2]; kernel.PPID == 0 && kernel.Comm == "kthreadd" { // in a container 2 is anybody
		below = append(below, 2)
	}
	for _, id := range exclude {
		if table[id.PID].Start == id.Start {
			below = append(below, id.PID)
		}
	}
	for _, p := range table {
		for _, root := range below {
			if table.below(p, root) {
				spared[p.PID] = true
			}
		}
	}
	return spared
}

// muteLimit is how many looks wait for a process that does not answer.
const muteLimit = 5

// hasMarker asks a process until it has answered: its environment can only be
// wiped later. Unsure means that it has not, yet: the machine is busy, or it is
// about to begin a program and has neither arguments nor environment.
func (h *hunt) hasMarker(p Proc) (has, sure bool) {
	if h.Marker == "" || p.State == 'Z' || h.unmarked[p.ID] || h.mute[p.ID] >= muteLimit {
		return false, true
	}
	env, err := Environ(p.PID)
	begun := len(env) > 0
	if err == nil && !begun && hasBegun(p.PID) { // wiped, or it began between the two questions
		begun = true
		env, err = Environ(p.PID)
	}
	switch {
	case slices.Contains(env, h.Marker):
		return true, true
	case errors.Is(err, errStuck), err == nil && !begun:
		h.mute[p.ID]++
		return false, false
	}
	h.unmarked[p.ID] = true
	return false, true
}

func setOf(numbers []int) map[int]bool {
	set := make(map[int]bool, len(numbers))
	for _, n := range numbers {
		set[n] = true
	}
	return set
}
