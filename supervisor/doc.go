// Package supervisor runs a launch: it gives the facts to the machine that
// decides, and does what it wants done.
//
// One goroutine, the loop, takes events (facts from the shim, the output, the
// samplers, the probes) in one order, gives each to the machine, and hands the
// effects that it asks for to the performer. Everything that decides is in the
// room machine; nothing here does. The room journal keeps every event and effect,
// for restarts and replay.
//
//	loop.go              one goroutine, one timer, one order
//	reader.go            the shim's messages and the server's output as events
//	watch.go sources.go health.go hardware.go
//	                     processes, GPUs, HTTP and kernel log as events
//	perform.go           the effects; each has a file of its own
//	  checks.go patching.go spawning.go soundness.go
//	  evidence.go releasing.go aside.go batons.go
//	serve.go resume.go reload.go recover.go
//	                     a launch from its begin, anew, otherwise, after its death
//	memory.go story.go eta.go
//	                     what earlier launches teach
//	station.go asking.go what is told and asked outside: socket, HTTP, systemd, hooks
//	look.go              a launch as another process sees it
package supervisor
