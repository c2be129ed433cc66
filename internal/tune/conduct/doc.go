// Package conduct performs the night of a study: it does what tune.Night asks
// for, on real servers, and writes down what came of it.
//
// Every launch is a child `sglaunch run` with a launch.toml of its own, so a
// trial has the shim, the supervisor, the verdicts, the patches, the kill and
// the proof of release of any other launch; it never tries again by itself.
package conduct
