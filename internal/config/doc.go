// Package config turns launch.toml and the flags that mirror it into typed
// options.
//
// Defaults are beaten by the file, the file by flags. Reading is strict: a key
// that is unknown, of a wrong type or out of bounds is an error, never ignored, and
// all errors of a file are told at once, each with its file, line, key and value.
// Config itself is plain data: the package starts nothing and keeps nothing open.
//
// The structs are the one description of the keys. Their tags carry the name
// (toml), what it means (about), the words it takes (oneof) and whether it
// names a path (path); flags, the example file, the effective configuration
// and the hints for misspelt keys are all made from them.
package config
