// Package detach starts a launch that outlives the session of the person who
// types it.
//
//	way := detach.Choose(detach.Host{...})
//	...
//	err := way.Start(ctx, detach.Launch{...})
//
// Where a service manager runs, the launch becomes a transient service of it
// (systemd-run): the system's for root, the person's own otherwise. That alone
// survives KillUserProcesses=. Everywhere else it gets a session of its own.
//
// Traps says what would still end such a launch, or take its shared memory away,
// at the last logout. A transient service has its settings on show for every
// user, so words and environment of the launch go through a Handover, a file
// that its owner alone can read and that is gone once it was read.
package detach
