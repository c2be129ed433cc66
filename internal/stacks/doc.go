// Package stacks finds out where processes stand: in which function, of which
// file, and which of several ranks stands somewhere else than the rest.
//
// It runs py-spy without stopping the process, else gdb, else reads what the
// kernel shows, for all processes side by side. Each look has a deadline of its
// own and is ended with everything that it started; a tool that fails, hangs or
// is not permitted is said, and is no fault of the process.
//
// One look proves nothing: a process is always somewhere. Two looks that are the
// same on every rank, some seconds apart, are what a hang looks like.
//
// Files: take.go (looking), tool.go (running what others wrote), pyspy.go, gdb.go
// and kernel.go (reading it), stack.go, place.go and group.go (what it means).
package stacks
