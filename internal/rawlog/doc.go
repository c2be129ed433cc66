// Package rawlog keeps the raw output of an attempt on disk: one sequence of
// bytes in one file or, once it is rotated, in several.
//
//	server.log.000000000000000  the first part: it begins at byte 0 of the output
//	server.log.000001073741824  the next: it begins at byte 1073741824
//	server.log                  the newest part, which is written
//
// A part is named after the offset of its first byte when it is set aside, so
// an offset in the output always tells the part and the place in it, and
// "cat server.log.* server.log" is the output. Parts end at the end of a line
// where there is one within reach. No byte is lost by a rotation; parts beyond
// Rotation.Keep are removed, oldest first.
//
// Create makes a Book, which the shim writes; Parts and Open are for whoever
// reads, also while it is written. Files are 0600: they hold secrets. The
// package imports the standard library alone.
package rawlog
