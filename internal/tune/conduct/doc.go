// Package conduct performs the night of a study: it does what tune.Night asks
// for, on real servers, and writes down what came of it.
//
// # Who does what
//
//   - tune.Night decides; it is a fold over records and knows nothing else.
//   - conductor asks it what to do, has it done and writes records: an intent
//     before, a verdict after. It decides nothing.
//   - site is the machine: the gate, the launches, what is watched beside them.
//   - attempt is one launch. Each is a child `sglaunch run` with a launch.toml of
//     its own, so a trial has the shim, the supervisor, the verdicts, the patches,
//     the kill and the proof of release of any other launch; it never tries again
//     by itself.
//   - Client is one run of a bench client, Journal the memory of the night.
//
// # Promises
//
//   - What is in the journal is on disk. A tuner that is killed between any two
//     records is taken up by the next Run: no trial is lost, none counted twice.
//   - Two servers of a study never live at once.
//   - The end of a server, by whatever sign, ends its client at once; a client is
//     bounded in time, in output and by what it completes, and leaves nothing.
//   - Nothing is ended that is not the study's own: processes are known by a
//     variable in their environment, launches by name and that variable. A
//     production server is ended by the study's contract alone.
//   - Whatever happens to the night, something serves in the morning: the
//     winner, the base, or the base without a journal. Only a person's stop, or a
//     base that does not start, leaves nothing.
//   - GPUs are watched, never set.
//
// # Files
//
//	run.go resume.go site.go       a night is begun, taken up, ended; the machine it is on
//	survey.go facts.go past.go     what a plan needs to know
//	conductor.go journal.go        the loop; what is on disk before the next step
//	gate.go soak.go                before a launch: is the machine free, and warm?
//	config.go caches.go            the launch.toml of a trial; its compiled kernels
//	trial.go launch.go records.go  a launch: up to ready, asked, stopped; its own account
//	differs.go endpoint.go answers.go
//	                               what its server says of itself, and to prompts
//	measure.go client.go           a measurement, by a bench client
//	  meter.go cpus.go             how far the client is, and where it runs
//	  prefill.go eyes.go energy.go what is looked at beside it
//	morning.go takeover.go relay.go
//	                               what serves before and after the night
//	status.go line.go text.go      what is told
//	clock.go                       pauses that end with their context
package conduct
