// Package preflight looks, before a server is started, for what would stop it
// twelve minutes later.
//
// Each check has its own deadline and says what it found and what to do. A
// check fails only on what is certain to end the launch; everything else that
// a person would want to know is a warning. Nothing here imports the server's
// package, opens a CUDA context, writes into a place of the server or changes
// anything.
package preflight
