// Package view shows a launch to a person on a terminal or in a pipe. It knows
// documents only, asks nobody and writes plain lines: no escape of the server's
// ever reaches the terminal, no line of the server's looks like one of ours.
package view
