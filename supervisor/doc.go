// Package supervisor decides about a launch.
//
// One goroutine, the loop, takes events (facts from the shim, the output, the
// samplers, the probes) in one order, gives each to the Machine, and hands the
// effects that the machine wants to be performed outside. The machine is pure:
// the same events give the same effects, so that the journal of a bad night
// can be replayed and becomes a test.
//
//	event.go effect.go   what can be learnt, what can be done
//	machine.go           Step: one event in, effects out
//	ending.go            how an attempt ends
//	verdict.go           slow or stuck
//	policy.go            what follows an attempt
//	reader.go            the shim's messages and the server's output as events
//	loop.go              one goroutine, one timer, one order
//	perform.go           the effects
//	checking.go          whether the answers are right, before others are told
//	view.go station.go   what is told and asked outside: socket, HTTP, systemd, hooks
//	look.go              a launch as another process sees it
//	journal.go           every event and effect, for restarts and replay
package supervisor
