package sglangcmd

import (
	"slices"
	"strings"
)

// WithFlag returns the command line with a flag set to the words given, in
// place of whatever it was set to; without words it stands alone. It is added at
// the end: the last word counts with argparse, whatever other name a flag has.
func WithFlag(argv []string, name string, words ...string) []string {
	return append(append(WithoutFlag(argv, name), name), words...)
}

// WithoutFlag returns the command line without a flag and its words.
func WithoutFlag(argv []string, name string) []string {
	var out []string
	for i := 0; i < len(argv); i++ {
		switch {
		case strings.HasPrefix(argv[i], name+"="):
		case argv[i] == name:
			for i+1 < len(argv) && !strings.HasPrefix(argv[i+1], "--") {
				i++
			}
		default:
			out = append(out, argv[i])
		}
	}
	return slices.Clip(out)
}
