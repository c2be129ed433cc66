// Package history remembers launches: attempts, the phases of every rank,
// numbers, causes, what was changed, and whether the caches were warm. It
// tells from them how long a start still takes, whether it is slower than
// usual, and what worked last.
//
// History is a convenience, never a condition: a database that is broken,
// locked, full, on a hung disk or written by a newer sglaunch gives errors
// that a caller reports once, and a launch goes on without. Every call is
// bounded by its context and by a limit of its own, even where the disk hangs.
//
// Records are whole or absent: a kill -9 or a power cut between two calls
// loses nothing that a call had returned for. Several launches of one machine
// may write at once. Every record may be written again; what is zero in it
// leaves alone what is on disk, so facts can be recorded as they arrive and a
// supervisor that takes over may repeat them.
//
// What is on disk is masked by the caller; nothing here knows secrets.
//
// Reading for decisions is apart from disk: DB.Past takes all that is known of
// a Key in one call, and a Past answers without any further reading.
package history
