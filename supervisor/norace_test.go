//go:build !race

package supervisor

const nightShare = 1
