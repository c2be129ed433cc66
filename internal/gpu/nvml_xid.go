//go:build cgo

package gpu

import (
	"fmt"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// xidWait is how long one wait for an Xid lasts, in milliseconds; the end of the
// sampler waits for it too.
const xidWait = 250

// xidWatch is the set of GPUs whose Xids are waited for. Waiting happens on a
// thread of its own beside the sampling, so what both touch is locked.
type xidWatch struct {
	set nvml.EventSet

	mu      sync.Mutex
	devices []device
}

// start asks for Xid events of every GPU that reports them.
func (w *xidWatch) start(d *nvmlDriver) {
	if !d.can("nvmlEventSetCreate") || !d.can("nvmlDeviceRegisterEvents") ||
		!d.can("nvmlDeviceGetSupportedEventTypes") || !d.can("nvmlEventSetWait_v2", "nvmlEventSetWait") {
		return
	}
	set, ret := d.lib.EventSetCreate()
	if ret != nvml.SUCCESS {
		return
	}
	w.set = set
	for _, it := range d.devices {
		w.add(d, it)
	}
}

func (w *xidWatch) add(d *nvmlDriver, it device) {
	if w.set == nil || it.handle == nil {
		return
	}
	types, ret := it.handle.GetSupportedEventTypes()
	if ret != nvml.SUCCESS || types&nvml.EventTypeXidCriticalError == 0 {
		return
	}
	it.handle.RegisterEvents(nvml.EventTypeXidCriticalError, w.set)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.devices = append(w.devices, it)
}

func (w *xidWatch) owner(handle nvml.Device) (uuid string, index int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, it := range w.devices {
		if it.handle == handle {
			return it.is.UUID, it.is.Index
		}
	}
	return "", -1
}

func (w *xidWatch) free(d *nvmlDriver) {
	if w.set != nil && d.can("nvmlEventSetFree") {
		w.set.Free()
	}
	w.set = nil
	w.devices = nil
}

func (d *nvmlDriver) xid() (Xid, bool, error) {
	if d.xids.set == nil {
		return Xid{}, false, errNoEvents
	}
	e, ret := d.xids.set.Wait(xidWait)
	switch {
	case ret == nvml.ERROR_TIMEOUT:
		return Xid{}, false, nil
	case ret != nvml.SUCCESS:
		return Xid{}, false, fmt.Errorf("cannot watch for Xids: %s", nvml.ErrorString(ret))
	case e.EventType != nvml.EventTypeXidCriticalError:
		return Xid{}, false, nil
	}
	x := Xid{At: time.Now(), Code: int(e.EventData)}
	x.UUID, x.Index = d.xids.owner(e.Device)
	return x, true, nil
}
