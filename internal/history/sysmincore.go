package history

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// sysMincore fills one byte for each page of a mapping. golang.org/x/sys has
// the number of the call but not the call.
func sysMincore(mapped, vec []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_MINCORE,
		uintptr(unsafe.Pointer(unsafe.SliceData(mapped))), uintptr(len(mapped)), uintptr(unsafe.Pointer(unsafe.SliceData(vec))))
	if errno != 0 {
		return errno
	}
	return nil
}
