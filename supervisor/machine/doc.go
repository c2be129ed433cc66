// Package machine decides about a launch, and does nothing else: events go in,
// effects come out. It reads no clock, no file and no randomness, so that the
// journal of a bad night can be replayed and becomes a test.
//
//	event.go effect.go      what can be learnt, what can be done
//	options.go state.go     what it decides by; where it stands
//	machine.go              Step: one event in, effects out; the way up
//	watching.go             what each source says of an attempt that runs
//	checking.go             ready and announced: are the answers right?
//	reading.go              what the sources show at a moment
//	moving.go verdict.go    what counts as progress; what its absence means
//	silence.go              what a person hears while nothing is printed
//	turns.go                a stop, a restart, a deadline, a new supervisor
//	ending.go               the way down, always in the same order
//	shortage.go             want of host memory, as the kernel counts it
//	policy.go budget.go     again or not, when, and with which exit code
//	suspect.go rungs.go ladder.go neighbour.go
//	                        what the next attempt does otherwise, and why
//	view.go snapshot.go registry.go
//	                        the machine as others see it, and as data
//	words.go                of the sentences that a person reads
//
// Why each rule is as it is: ../design.md. What each rule is: testdata/scripts.
package machine
