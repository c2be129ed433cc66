// Package proc knows processes: which ones belong to an attempt, whether they
// still live, what they are busy with, and how to end them all.
//
// What it promises:
//   - A process is named by pid and start time, never by pid alone: pids are
//     reused. A signal goes through a pidfd whose start time was verified, so
//     it reaches that process or none.
//   - Nothing here waits for a process that cannot answer. Reading the command
//     line or the environment of a process in D state can block in the kernel;
//     such reads run in a goroutine of their own, with a deadline, and only a
//     bounded number of them may be stuck at a time.
//   - A process is dead when it is gone, or a zombie without a living thread: it
//     then holds no memory, no file and no GPU. A zombie whose threads still run
//     is alive.
//   - The environment marker is one sign of several: setproctitle, which SGLang
//     calls in each scheduler, wipes /proc/PID/environ of exactly the processes
//     that hold the memory. Records, session and parenthood do not depend on it.
//   - A look at /proc is complete or says that it is not: every pid that the
//     kernel gave out meanwhile is looked at too, so that nobody hides between two
//     readings by forking and ending. What no look can find is a process that was
//     never seen, has left every session, wiped its environment and lost its
//     parents to somebody else than us: hence the shim, who is the parent of
//     orphans, and the cgroup.
//   - Where it is permitted an attempt has a cgroup of its own, made by us and
//     never anybody else's. Whoever is born in it dies with it, and that it is
//     empty is the kernel's word. It is one sign of several too: the rest holds
//     without it.
//
// # Files
//
//	stat.go sweep.go table.go  one process; all of them
//	tree.go                    who descends from whom, followed cheaply
//	membership.go cgroup.go    who belongs to an attempt
//	records.go                 and is known to, when the shim is dead
//	kill.go await.go exitstatus.go
//	                           their end: made, waited for, explained
//	activity.go delay.go       what they do
//	signals.go                 what they hear
//	pressure.go memory.go hierarchy.go
//	                           what they lack, by the groups that count it
//	evidence.go                where they stand
//	listen.go who.go text.go   who that is, for a person
//	guard.go                   reads that may hang
package proc
