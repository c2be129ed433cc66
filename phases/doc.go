// Package phases reads what an SGLang server prints.
//
// Bytes go in, in any chunking; observations come out: which phase a rank has
// reached, how far its progress has come, what failed and what that failure
// means. The same bytes give the same observations, live (Tracker) or read back
// from a file (Read). Memory is bounded whatever comes in, and nothing panics.
// The package knows nothing of processes, clocks or the supervisor.
//
// The way of a byte: a splitter cuts pieces at \n and \r; a prefixer takes off
// what relays, torch and SGLang put before the message; rules give the message
// its meaning; a node keeps how far the ranks have come and which failures
// nothing has outlived; the report names the first of them that states a cause
// of its own.
//
// The rules are data: see the rules folder and docs/rules.md.
package phases
