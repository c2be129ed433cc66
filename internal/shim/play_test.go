package shim_test

// play is what this binary does as a server.
func play(role string, args []string) int {
	return 5
}
