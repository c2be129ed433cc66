// Package probe asks a server over HTTP whether it is there, and reports what
// it saw. What follows from that is decided elsewhere: see Answer.
package probe
