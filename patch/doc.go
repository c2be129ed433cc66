// Package patch changes an installed Python package for one launch and leaves
// no trace of it.
//
// # What it promises
//
//   - A plan writes nothing and never imports the package it looks at. It says
//     of every file what would happen and why, by content: the hash of the
//     whole file and anchors inside a named class or def, never by a search for
//     a word.
//   - Apply takes the plan's hashes as preconditions and is all or nothing over
//     the set. A file is never written in place: a new one is renamed over it,
//     so hard-linked caches of uv or conda keep their bytes and a reader sees
//     one version or the other, never half of either.
//   - The originals lie outside the package, by hash, and by a hard link where
//     the file system permits. Revert brings back bytes, mode, owner, times,
//     links and bytecode, of the file and of its folder.
//   - Revert and recovery never overwrite what somebody else wrote in between.
//     Such a file is reported as drifted and left alone.
//   - Every step is in a journal on disk before it is done; after kill -9, a
//     full disk or a power cut, Recover ends in the state before or after, and
//     hashes alone decide which. A process that outlives its state directory
//     reverts what it has applied from memory.
//
// # Who owns what
//
// A Ledger owns one state directory: the journal, the originals and the leases.
// Any number of processes may open the same directory; each change happens under
// a lock on the ledger and on the folder that holds the package. The caller owns
// the moment: Apply before the server is spawned, Revert after the proof that its
// whole process tree is gone (a child spawned after a revert would import the
// unpatched file while its parent runs the patched one).
//
// The package knows nothing of the supervisor. Effect, the verdict whether a
// patch did anything, is a pure function of what the caller saw.
package patch
