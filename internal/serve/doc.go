// Package serve is how a launch is asked from outside: what its status is, that
// it shall stop, that the server shall be started anew.
//
// # Interface
//
// The supervisor opens a Server on the launch's control socket and tells it
// what happens (Publish). `sglaunch status`, stop and restart, and scripts of
// one's own, use Ask and Watch, or write one line of JSON by hand:
//
//	{"do":"status"}               answered by a Status, one line
//	{"do":"watch"}                a Status, then an Envelope a line until the launch ends
//	{"do":"stop","by":"cron"}     "accepted" or "refused"; "force":true does not let the server drain
//	{"do":"restart","by":"cron"}  the same
//
// # Promises
//
//   - The socket has mode 0600 from the moment it exists, and only root and the
//     user of the launch are served, whatever a folder's mode says.
//   - A Server costs the launch nothing: Publish never waits; a client that
//     reads slowly loses news (and is told how many), one that reads nothing is
//     dropped; of clientsMost at a time the one that has longest asked nothing makes
//     room for the next, and where all have asked, the next is refused.
//   - A socket that somebody answers on is left alone; one of a dead launch is
//     replaced.
package serve
