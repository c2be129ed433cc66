//go:build cgo && linux && (amd64 || arm64)

package lazynvml

// #cgo CFLAGS: -Wall -Wextra -Wno-override-init
// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "bind.h"
import "C"

import (
	"errors"
	"unsafe"
)

// Load opens the driver's library, by the name that the loader looks for or by
// its path. It stays open; a second Load with another name changes nothing. It
// must have returned before go-nvml is used.
func Load(path string) error {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var why [512]C.char
	if C.sglaunch_nvml_load(name, &why[0], C.ulong(len(why))) != 0 {
		return errors.New(C.GoString(&why[0]))
	}
	return nil
}

// Has tells whether the library that was loaded has the function.
func Has(function string) bool {
	name := C.CString(function)
	defer C.free(unsafe.Pointer(name))
	return C.sglaunch_nvml_has(name) != 0
}
