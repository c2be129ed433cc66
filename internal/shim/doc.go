// Package shim owns the server: a small process that starts it, keeps its
// output and every process of it, and outlives whatever watches and decides.
//
// # Interface
//
//	status := shim.Run(shim.Options{Supervisor: argv})
//
// Run takes the whole process over (signals, children, descriptors) and returns
// the exit status of sglaunch. The other half of the interface is the protocol
// to the supervisor, package wire.
//
// # Behaviour
//
//  1. The shim makes itself the parent of orphans (child subreaper) and the last
//     process that the kernel ends when memory runs out, as far as it may. What
//     is below it already is left alone for good.
//  2. It starts the supervisor in a process group of its own, with one end of a
//     socket pair as descriptor 3, and sends it Welcome: the facts that may
//     never be wrong. A supervisor that dies is started again at once and gets
//     them anew.
//     On Replace the next supervisor is another program; one that dies within a
//     minute is replaced by our own again. Our own is never another file that
//     stands in its place by now.
//  3. On Spawn it starts the server as the raw command would have started: same
//     folder, environment (and a marker), limits, masks and standard files. The
//     server gets a session of its own, on a pty that changes no byte, or on
//     pipes, and where that is permitted a cgroup of its own. One attempt lives
//     at a time; a second Spawn is refused until the tree of the first is known
//     to be gone.
//  4. Output goes into a spool: the last 4 MiB in memory, all of it in the raw
//     log. Standard output and the supervisor read the spool at their own pace,
//     from the log where they have fallen behind; output that follows other output
//     gathers for 10 ms before anybody is woken for it. Neither a blocked terminal, a
//     full or hanging disk nor a dead supervisor holds the server up (a slow
//     disk may, for half a second). Bytes that nobody could hold are counted and
//     told, never passed over in silence.
//  5. Every descendant is seen, recorded by pid and start time and told to the
//     supervisor: 100 ms after a change at first, every 2 s in service.
//  6. On Kill it ends everything of the attempt with SIGKILL until two looks find
//     nobody, or says who would not go and why. Nothing that belongs to the
//     supervisor or was there before is touched.
//  7. The output is drained: complete, or cut after Spec.Drain where somebody
//     outside the tree holds the terminal.
//  8. On Finish it makes sure that nothing of the attempt lives, waits until
//     everything is written and returns the status. A reader that takes nothing
//     for half a minute is not waited for any longer, and told to have missed
//     so many bytes. Once somebody asks for the end meanwhile, a second is enough.
//  9. It pings the supervisor every 5 s. One whose loop has answered before and
//     then does not for 24 times, two minutes, was stopped or hangs: it is killed
//     and started again like one that died. Once somebody has asked for the end
//     two times are enough.
//  10. A stretch of output that a supervisor died of is named to the next one
//     (Suspect), which goes through it line by line; the line that kills again
//     is skipped (Skip).
//  11. A supervisor that dies five times within 30 s without getting on is given
//     up. While a server lives it is kept, without decisions ("blind"), one more
//     supervisor is tried every five minutes and on SIGHUP, and when it has ended
//     one last supervisor may tidy up. With no server alive the launch ends with
//     status 10, or 12 if a patch is still applied.
//
// # Signals
//
//   - SIGINT, SIGTERM: told to the supervisor. The third one kills the tree at
//     once, whatever the supervisor does, and the next one is told so (Granted),
//     or the end would look like somebody else's. A blind shim acts on the first:
//     SIGTERM to the server, a grace, SIGKILL; the second skips the grace.
//   - SIGHUP: told to the supervisor. Where the launch belongs to a terminal it is a
//     wish to end, elsewhere one to read launch.toml again; the next supervisor hears
//     of what this one did not.
//   - SIGQUIT: told to the supervisor like SIGINT; it is Ctrl-\. Where one of the
//     server's tree has lost its parents and is our child, it goes to the server:
//     SGLang's children send SIGQUIT to their parent when they fail.
//   - SIGUSR1, SIGUSR2: to the server.
//   - SIGWINCH: the pty takes the size of our terminal, which tells the server.
//   - SIGTSTP: server, supervisor and shim stop, as Ctrl-Z expects; SIGCONT
//     continues them.
//   - What was ignored when the shim was started stays ignored.
//   - SIGKILL of the shim: the kernel ends the server's first process with it,
//     the pty hangs up, and the supervisor, which sees the socket close, ends
//     the rest with the records, the cgroup and package proc.
//
// # Files
//
//   - Spec.Log: the raw output, secrets included, 0600. An offset of the output
//     is the offset in the file, or in its parts where it is rotated (package
//     rawlog); what the disk missed is a hole.
//   - Spec.Errors: with pipes, standard error once more by itself.
//   - Spec.Records: the processes seen, one JSON line each (proc.Record), 0600.
//   - Spec.Records + ".cgroup": the cgroup of the attempt, or why there is none
//     (proc.NoteCgroup), 0600.
//   - JOURNAL_STREAM: where standard output is systemd's journal, bars become
//     lines there; everywhere else it gets the server's bytes as they are. See
//     Options.Passthrough.
//   - NOTIFY_SOCKET, WATCHDOG_USEC: systemd is told what the supervisor says in
//     Notify, and the watchdog is petted as long as the loop gets its turn.
//
// # The code, in the order of a byte
//
//	server.go               an attempt's server: asked for, started, ended
//	  stage.go start.go     its descriptors; its process
//	  enclosure.go oom.go   its cgroup; whom the kernel ends first
//	output.go               what it prints is read
//	  spool.go turns.go     into memory, from where each reader takes it
//	  recorder.go           into the raw log
//	  outlet.go writing.go  to the person; journald.go makes lines of it
//	  link.go, wire         to the supervisor
//	supervisor.go pulse.go  who decides: started, felt, brought back
//	control.go              what it has us do
//	facts.go                what none of them may forget
//	watch.go records.go     who belongs to the attempt: seen, written down
//	kill.go                 and ended
//	signals.go stdin.go     what a person types
//	notify.go               what systemd hears
//	ending.go               the end of the launch
//	shim.go                 the one loop that all of this has its turn in
//	bell.go clock.go files.go
//	                        waiting, time, descriptors
//
// # What not to do
//
//   - Do not call Run twice or beside other code that starts or waits for
//     processes: every child is reaped here.
//   - Do not write to standard output or standard error of the process: the
//     outlets are the only writers, or lines would tear.
//   - Do not let anything slow into the loop: no disk, no /proc of a process
//     that may hang, no terminal. Each has a goroutine of its own.
//   - Do not import phases, patch, config or gpu: this is the part that must not
//     fail (a test forbids it).
package shim
