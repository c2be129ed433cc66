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
// Most of an output says nothing new, and what says nothing is passed over as early
// as that can be known. What is passed over changes nothing: the tests go the long
// way as well. Who reads what first, in a saved output:
//
//	reader    parallel.go  cuts it into chunks at the ends of lines
//	survey    survey.go    says of each line of a chunk what can be said without those
//	                       before it; many chunks beside each other
//	  clear   clear.go     reads the chunk out of colours and envelopes, where it is in such
//	  scout   scout.go     knows where the next thing stands that a line may hold; the
//	                       literals of all rules by samples (matcher.go)
//	  voices  voices.go    who spoke in which lines
//	hold      latest.go    the tracker leaves attempts unread that nobody will be told of;
//	                       while it does, surveys are hasty and look for starts alone
//	skip      skim.go      it passes over the runs of lines that a survey found to say
//	                       nothing, where it knows who speaks
//	dull      skim.go      of a line that is left it asks the marks: of the message, if that
//	                       was said before (memo.go), else of the scout
//	read      tracker.go   and the rest goes the long way: prefixes (prefix.go, outer.go,
//	                       habit.go, envelope.go), then rules (examine.go, memo.go)
//
// Of a live output there is no survey: skip passes over requests and batches, and the
// rest is the same.
//
// The rules are data: see the rules folder and docs/rules.md.
package phases
