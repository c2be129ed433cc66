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
// Who reads a saved output has it surveyed ahead of that, many chunks beside each
// other: lines that say nothing, whoever relayed them, and attempts that are not
// told of are passed over. What is passed over changes nothing: the tests go the
// long way as well.
//
// The rules are data: see the rules folder and docs/rules.md.
package phases
