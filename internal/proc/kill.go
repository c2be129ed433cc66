package proc

import (
	"context"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// A tree that is gone was seen gone twice, the last time by a complete look.
	// On a machine where processes are born faster than one can look, many looks
	// that found nobody have to do.
	looksToBeSure  = 2
	looksInTurmoil = 50
	// stubborn is the number of rounds after which whole process groups are
	// struck: the kernel lets no fork escape a signal to a group.
	stubborn = 2
	// watched bounds the pidfds that are open at one time.
	watched = 128

	shortWait = 5 * time.Millisecond
	longWait  = 250 * time.Millisecond
)

// KillAll ends every member with SIGKILL, again and again until none is left or
// the context ends; it strikes at least once. Gone means that nobody is left,
// else left are the living (Condition says why one may not go). Whoever is the
// parent of members must reap meanwhile.
func KillAll(ctx context.Context, m Membership) (gone bool, left []Proc) {
	return EndAll(ctx, nil, newHunt(m).look, m.Cgroup)
}

// EndAll is KillAll for whoever knows better who belongs, such as the parent of
// orphans: look returns the living members, and whether it has seen everybody.
// The cgroup of the attempt, nil where it has none, dies as a whole and is
// removed. It and the members known already are struck before the first look: in a
// storm of births a look may take longer than there is time.
func EndAll(ctx context.Context, known []Proc, look func() (members []Proc, complete bool, err error), c *Cgroup) (gone bool, left []Proc) {
	own := 0 // our own session is never struck as a whole
	if self, err := Identify(os.Getpid()); err == nil {
		own = self.Session
	}
	_ = c.Kill() // where it cannot, the members are struck one by one
	strike(known, false, own)
	none, wait := 0, shortWait
	for round := 0; ; round++ {
		members, complete, err := look()
		members = union(members, c.Members())
		if err == nil && len(members) == 0 && !c.Populated() {
			if none++; none >= looksToBeSure && complete || none >= looksInTurmoil {
				c.Remove()
				return true, nil
			}
			continue
		}
		if none = 0; err != nil {
			wait = longWait
		}
		_ = c.Kill()
		news := strike(members, round >= stubborn, own)
		if ctx.Err() != nil {
			return false, members
		}
		if wait = min(2*wait, longWait); news {
			wait = shortWait
		}
		awaitEnd(ctx, members, wait)
	}
}

// strike sends SIGKILL to each of the members, and to their groups where they
// fork faster than single blows fall.
func strike(members []Proc, wholeGroups bool, own int) (news bool) {
	groups := map[int]bool{}
	for _, p := range members {
		if err := Send(p.ID, unix.SIGKILL); err == nil {
			news = true
		}
		if wholeGroups && p.Session != own && p.Group > 1 && !groups[p.Group] && Alive(p.ID) {
			groups[p.Group] = true
			_ = unix.Kill(-p.Group, unix.SIGKILL)
		}
	}
	return news
}

// Send signals exactly this process. The error is ErrGone where it has ended,
// also when its pid is in use again. The first process of all may be a shim, in a
// container, and is asked like any other; it is never killed.
func Send(id ID, sig unix.Signal) error {
	if id.PID == 1 && sig == unix.SIGKILL {
		return unix.EPERM
	}
	fd, err := openVerified(id)
	switch {
	case err == unix.ENOSYS: // kernels before 5.3: verified a moment ago is the best there is
		if !Alive(id) {
			return ErrGone
		}
		return unix.Kill(id.PID, sig)
	case err != nil:
		return err
	}
	defer unix.Close(fd)
	if err = unix.PidfdSendSignal(fd, sig, nil, 0); err == unix.ESRCH {
		return ErrGone
	}
	return err
}

// openVerified returns a pidfd of exactly this process. The order matters: a
// process that has the right start time after the descriptor was opened held
// the pid before it too, so the descriptor is its own.
func openVerified(id ID) (int, error) {
	if id.PID < 1 || id.PID == os.Getpid() {
		return -1, unix.EPERM
	}
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err == unix.ESRCH {
		return -1, ErrGone
	}
	if err != nil {
		return -1, err
	}
	if start, err := StartTimeOf(id.PID); err != nil || start != id.Start {
		unix.Close(fd)
		return -1, ErrGone
	}
	return fd, nil
}

// awaitEnd returns when all the members have ended, or after the wait. Where
// nothing can be watched it waits all the same: KillAll must not spin.
func awaitEnd(ctx context.Context, members []Proc, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	end, _ := ctx.Deadline()
	watching := 0
	for chunk := range slices.Chunk(members, watched) {
		var fds []unix.PollFd
		for _, p := range chunk {
			if fd, err := openVerified(p.ID); err == nil {
				fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
			}
		}
		watching += len(fds)
		pollAll(fds, end)
		for _, f := range fds {
			unix.Close(int(f.Fd))
		}
	}
	if watching == 0 {
		<-ctx.Done()
	}
}

// pollAll waits until every descriptor was readable once, or for the end.
func pollAll(fds []unix.PollFd, end time.Time) {
	open := slices.Clone(fds)
	for len(open) > 0 {
		left := time.Until(end).Milliseconds()
		if left <= 0 {
			return
		}
		if _, err := unix.Poll(open, int(left)); err != nil && err != unix.EINTR {
			return
		}
		open = slices.DeleteFunc(open, func(f unix.PollFd) bool { return f.Revents != 0 })
	}
}

// union adds to a list those of another that it lacks.
func union(list, more []Proc) []Proc {
	for _, p := range more {
		if !slices.ContainsFunc(list, func(q Proc) bool { return q.ID == p.ID }) {
			list = append(list, p)
		}
	}
	return list
}

// living returns those that are not dead, by pid.
func living(procs map[int]Proc) []Proc {
	var alive []Proc
	for _, p := range procs {
		if !p.Dead() {
			alive = append(alive, p)
		}
	}
	sortProcs(alive)
	return alive
}
