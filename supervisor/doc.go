// Package supervisor runs a launch: it gives the facts to the machine that
// decides, and does what it wants done.
//
// One goroutine, the loop, takes events (facts from the shim, the output, the
// samplers, the probes) in one order, gives each to the machine, and hands the
// effects that it asks for to the performer. Everything that decides is in the
// room machine; nothing here does. The room journal keeps every event and effect,
// for restarts and replay.
//
//	serve.go setup.go       the life of one supervisor, and what it is given
//	launch.go lock.go       a launch is begun, or taken up where the journal left it
//	reader.go deadly.go wishes.go diagnosis.go
//	                        the shim's messages and the server's output as events
//	loop.go                 one goroutine, one timer, one order
//	hands.go perform.go     the effects, each in a file of its own:
//	  checks.go patchcheck.go ghost.go patching.go spawning.go answers.go
//	  evidence.go standing.go releasing.go aside.go batons.go
//	attempt.go watch.go     what is looked at while an attempt runs, as events
//	  rollcall.go sources.go health.go ours.go stranger.go hardware.go proof.go
//	telling.go              what is told: to a person, to the records of an attempt
//	  record.go appender.go gpulog.go tidy.go
//	station.go              and to whoever asks: socket, HTTP, systemd, hooks
//	  status.go tally.go
//	memory.go               what earlier launches teach, what this one leaves
//	  story.go spans.go relive.go eta.go surroundings.go tuned.go soundness.go marks.go
//	reload.go               the server goes on, by another configuration or program
//	lastrites.go recover.go the shim has died; everything has died
//	look.go                 a launch as another process sees it
//	waiting.go              waits that end
package supervisor
