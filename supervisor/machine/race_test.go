//go:build race

package machine

// The race detector makes the machine's tests ten times slower and has nothing
// to find in one goroutine: a tenth of the nights is enough for the loops
// around them. .ci/checks/nights.sh plays all.
const nightShare = 10
