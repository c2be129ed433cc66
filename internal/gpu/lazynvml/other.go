//go:build cgo && !(linux && (amd64 || arm64))

package lazynvml

import "github.com/NVIDIA/go-nvml/pkg/dl"

// Without trampolines for this architecture the loader binds the functions.
var library *dl.DynamicLibrary

// Load opens the driver's library. It stays open.
func Load(path string) error {
	if library != nil {
		return nil
	}
	l := dl.New(path, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	if err := l.Open(); err != nil {
		return err
	}
	library = l
	return nil
}

// Has tells whether the library that was loaded has the function.
func Has(function string) bool { return library != nil && library.Lookup(function) == nil }
