// Package tune decides a night of measurements: which launches of a server are
// made, in which order, what each failure teaches about the others, when the
// night has to stop, and whether anything was found.
//
// It is pure. A Study is what a person asks for, a Plan is what can be made of
// it, and a Night is a fold over the records of what happened: Next says what
// to do now. There is no clock, file, process or goroutine here; package
// conduct performs actions and writes records. The same records give the same
// decisions, so a night that was killed goes on where it stood.
//
// The unit of repetition is the launch: what is measured twice on one server
// is one sample. Every launch is compared with launches of the baseline beside
// it in time, and "no significant winner" is an answer.
package tune
