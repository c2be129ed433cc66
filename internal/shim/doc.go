// Package shim is the small process that owns the server.
package shim
