//go:build !cgo

package gpu

import "time"

// noDriver stands in where the binary was built without cgo, which go-nvml
// needs: the launch works, without GPU figures, and says so once.
type noDriver struct{}

func newDriver(*callLog) driver { return noDriver{} }

func (noDriver) open() error {
	return &openError{absent: true, text: "this binary was built without cgo"}
}

func (noDriver) sample(bool, <-chan struct{}) Sample { return Sample{At: time.Now()} }
func (noDriver) xid() (Xid, bool, error)             { return Xid{}, false, nil }
func (noDriver) close()                              {}
