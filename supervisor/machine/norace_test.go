//go:build !race

package machine

const nightShare = 1
