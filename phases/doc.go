// Package phases reads what an SGLang server prints.
//
// Bytes go in, in any chunking; observations come out: which phase a rank has
// reached, how far its progress has come, what failed and what that failure
// means. The same bytes give the same observations, live or read back from a
// file. The package knows nothing of processes, clocks or the supervisor.
//
// The rules that give lines their meaning are data: see the rules folder.
package phases
