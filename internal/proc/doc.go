// Package proc knows processes: which ones belong to an attempt, whether they
// still live, what they are busy with, and how to end them all.
//
// What it promises:
//
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
//
// Files: stat.go (one process), table.go (all of them, membership), tree.go
// (following descendants cheaply), kill.go (ending them), records.go (what a
// dead shim leaves behind), activity.go and evidence.go (what they do).
package proc
