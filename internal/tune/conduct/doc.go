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
// conductor.go is the loop; run.go and resume.go begin, take up and end a night;
// survey.go, facts.go and past.go find out what a plan needs; config.go writes
// each launch.toml; trial.go, launch.go and records.go are a launch; measure.go,
// client.go, meter.go and prefill.go a measurement; answers.go what a
// server says; gate.go and eyes.go what is looked at;
// morning.go, takeover.go and relay.go the service; status.go and line.go tell.
package conduct
