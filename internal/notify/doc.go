// Package notify tells others what a launch does: systemd, hooks, a webhook.
//
// # Promises
//
//   - Systemd (type Systemd) decides what systemd is told and never speaks
//     itself: the shim does, as the main process of the unit. READY=1 is said
//     once a launch is announced and not before, STOPPING=1 when its end has
//     begun. A start is extended only as far as the machine's own next deadline,
//     which progress alone moves.
//   - Hooks run beside the launch, each kind in order, under its own limit,
//     without a shell, with one JSON document on standard input. They get no
//     line of the server's output, no secret, and no variable that speaks to
//     systemd. Nothing of theirs ever holds a decision up.
package notify
