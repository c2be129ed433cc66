// Package probe asks a server over HTTP whether it is there, and reports what
// it saw and how far that can be believed: what /health means depends on the
// version of SGLang. What follows from an answer is decided elsewhere.
//
// A probe is polite. There is never more than one in flight, it has its own
// limit, it goes past every proxy, reads a bounded part of the answer, and
// keeps no connection open. It never asks for a generation where that could
// harm the server.
package probe
