package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Want of host memory, as the kernel counts it for the control groups around a
// server: that of its unit, its container, its job. Who was ended is not said, so
// a count alone proves nothing; a death without words soon after it is explained.

const (
	// soonAfter bounds the time from a process that the kernel ended to the death
	// that it explains.
	soonAfter = 2 * time.Minute
	// stillPressing is how long a limit that was reached is told as a burden.
	stillPressing = time.Minute
)

// memoryNews is what the readings of an attempt's memory groups came to.
type memoryNews struct {
	First  []MemoryGroup // each group's first reading
	Newest []MemoryGroup // and its newest
	Killed time.Time     // when a count of ended processes was last seen to grow
	Short  time.Time     // when a limit was last seen to be reached
	Near   bool          // a process was ended shortly before the attempt failed
	Beside string        // what the counts say of a death that they do not explain; see beside
}

// memoryRead takes a reading while the attempt runs.
func (m *Machine) memoryRead(groups []MemoryGroup) {
	if m.shortOf(groups) > 0 && m.tell("memory", time.Minute) {
		m.say("fault", m.run.Memory.killed()+m.run.Memory.limits(), "cause", "killed_oom", "severity", "note")
	}
}

// shortOf compares a reading with the one before, and counts the processes that
// the kernel ended in between. A group that is read for the first time begins here.
func (m *Machine) shortOf(groups []MemoryGroup) (killed uint64) {
	n := &m.run.Memory
	if killed = killedBetween(n.Newest, groups); killed > 0 {
		n.Killed = m.now
	}
	if len(pressed(n.Newest, groups)) > 0 {
		n.Short = m.now
	}
	n.First, n.Newest = withAll(n.First, groups), withAll(groups, n.Newest)
	return killed
}

// withAll adds to a reading the groups of another that it lacks.
func withAll(groups, more []MemoryGroup) []MemoryGroup {
	all := slices.Clone(groups)
	for _, g := range more {
		if _, ok := same(all, g); !ok {
			all = append(all, g)
		}
	}
	return all
}

// starved: the kernel ended a process for want of memory. Its log names the
// process; where that may not be read, its counters have to do, once all words of
// the death are in.
func (m *Machine) starved(b Evidence) {
	n := &m.run.Memory
	m.shortOf(b.Memory)
	n.Near = !n.Killed.IsZero() && m.now.Sub(n.Killed) <= soonAfter
	if b.Killed != "" && !m.run.Asked && !m.run.Person {
		m.blameShortage(b.Killed)
	}
}

// count lets the counters explain a death that nothing else has explained, and
// stand beside one that they do not explain.
func (m *Machine) count() {
	r := &m.run
	switch {
	case r.Proven || r.Outcome == OutcomeStopped:
	case r.Memory.Near && r.likeKill():
		m.blameShortage(r.Memory.killed())
	default:
		r.Memory.Beside = r.Memory.beside(r.Cause)
	}
}

func (m *Machine) blameShortage(why string) {
	why += m.run.Memory.limits()
	m.say("fault", why, "cause", "killed_oom")
	m.run.Cause, m.run.Why, m.run.Proven = "killed_oom", why, true
}

// likeKills are causes that a SIGKILL of one of its processes looks like.
var likeKills = []string{"", "unknown", "killed_oom", "killed_outside", "peer_rank_failed", "zombie_server", "jit_compile_failed"}

// likeKill reports whether it ended as it would if one of its processes was
// killed.
func (r *run) likeKill() bool {
	if s := r.Exited; s != nil && (s.Signal == 9 || s.Code == 128+9) { // a shell in between says 137
		return true
	}
	if g := r.Gone; g != nil && g.Status != nil && g.Status.Signal == 9 {
		return true
	}
	return slices.Contains(likeKills, r.Cause)
}

// killed says in words how many processes the kernel ended since the attempt
// began; "" = none is known of.
func (n memoryNews) killed() string {
	switch count := killedBetween(n.First, n.Newest); count {
	case 0:
		return ""
	case 1:
		return "the kernel ended a process for want of memory"
	default:
		return fmt.Sprintf("the kernel ended %d processes for want of memory", count)
	}
}

// limits says which limits were reached since the attempt began; it begins with a
// semicolon or is empty.
func (n memoryNews) limits() string {
	groups := pressed(n.First, n.Newest)
	if len(groups) > 0 {
		return "; " + strings.Join(groups, "; ")
	}
	if n.killed() != "" {
		return "; no limit that shows here was reached, so the machine ran out, or a group around this one"
	}
	return ""
}

// beside is what the counts say of a death that they do not explain; it begins
// with a semicolon or is empty. Where nobody was ended for want of memory, and the
// output guesses it, or names nobody, they say that too.
func (n memoryNews) beside(cause string) string {
	if killed := n.killed(); killed != "" {
		return "; since the attempt began " + killed + n.limits()
	}
	guess := cause == "killed_outside" || cause == "killed_oom"
	if guess && len(n.Newest) > 0 && n.Newest[0].Counted {
		return fmt.Sprintf("; the kernel counts no process that it ended for want of memory in %s", n.Newest[0].name())
	}
	return ""
}

// killedBetween counts what the innermost group that both readings hold lost.
func killedBetween(before, after []MemoryGroup) uint64 {
	for _, now := range after {
		if then, ok := same(before, now); ok && then.Counted && now.Counted {
			return grown(then.Killed, now.Killed)
		}
	}
	return 0
}

// pressed says which groups reached a limit of their own between two readings.
func pressed(before, after []MemoryGroup) (all []string) {
	for _, now := range after {
		then, ok := same(before, now)
		if !ok {
			continue
		}
		if times := grown(then.Reached, now.Reached); times > 0 {
			all = append(all, fmt.Sprintf("%s reached its limit of %s %s (used: %s, of it file pages: %s)",
				now.name(), gib(now.Limit), often(times), gib(now.Used), gib(now.Cache)))
		}
		if times := grown(then.Slowed, now.Slowed); times > 0 {
			all = append(all, fmt.Sprintf("%s was slowed down above its high mark %s (used: %s)", now.name(), often(times), gib(now.Used)))
		}
	}
	return all
}

func same(groups []MemoryGroup, as MemoryGroup) (MemoryGroup, bool) {
	i := slices.IndexFunc(groups, func(g MemoryGroup) bool { return g.Name == as.Name })
	if i < 0 {
		return MemoryGroup{}, false
	}
	return groups[i], true
}

// name is for a person: within a container its own group is "/".
func (g MemoryGroup) name() string {
	if g.Name == "/" {
		return "the memory group of this container or machine"
	}
	return "memory group " + g.Name
}
