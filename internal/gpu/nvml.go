//go:build cgo

package gpu

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"sglaunch/internal/gpu/lazynvml"
)

// nvmlDriver asks through go-nvml. Whether the loaded library has a function is
// asked first (can): on an architecture without lazynvml's own definitions, a
// call of one that is missing ends the process ("symbol lookup error", status
// 127), and what was never asked needs no answer.
type nvmlDriver struct {
	log     *callLog
	lib     nvml.Interface
	known   map[string]bool
	devices []device
	xids    xidWatch
	driver  string
	version string
	cuda    string
}

// device is a GPU that answered, with what does not change.
type device struct {
	handle nvml.Device
	is     GPU
	mig    bool
}

// newDriver returns the machine's driver. Calls are noted in log.
func newDriver(log *callLog) driver { return &nvmlDriver{log: log, known: map[string]bool{}} }

func (d *nvmlDriver) open() error {
	path := os.Getenv(libraryVariable)
	if path == "" {
		path = "libnvidia-ml.so.1"
	}
	if err := d.load(path); err != nil {
		return err
	}
	if d.lib == nil {
		d.lib = nvml.New(nvml.WithLibraryPath(path))
	}
	end := d.log.begin("nvmlInit", -1)
	ret := d.lib.Init()
	end()
	if ret != nvml.SUCCESS {
		return &openError{code: int(ret), text: fmt.Sprintf("%s (NVML code %d)", initText(ret), ret)}
	}
	d.versions()
	if err := d.enumerate(); err != nil {
		d.close()
		return err
	}
	d.xids.start(d)
	return nil
}

// load opens the library and checks that it is one that can be asked at all.
func (d *nvmlDriver) load(path string) error {
	if d.lib != nil {
		return nil
	}
	if err := lazynvml.Load(path); err != nil {
		return &openError{absent: true, text: strings.TrimSpace(err.Error())}
	}
	for _, names := range [][]string{
		{"nvmlInit_v2", "nvmlInit"},
		{"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"},
		{"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"},
		{"nvmlErrorString"},
		{"nvmlShutdown"},
	} {
		if !d.can(names...) {
			return &openError{absent: true, text: fmt.Sprintf("%s has no function %s", path, names[0])}
		}
	}
	return nil
}

// can tells whether the library has one of the functions.
func (d *nvmlDriver) can(names ...string) bool {
	for _, name := range names {
		has, asked := d.known[name]
		if !asked {
			has = lazynvml.Has(name)
			d.known[name] = has
		}
		if has {
			return true
		}
	}
	return false
}

// initText adds to NVML's own words what the two usual cases are called by
// people.
func initText(ret nvml.Return) string {
	switch ret {
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return "the kernel driver is not loaded"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return "the library and the loaded kernel driver are of different versions"
	}
	return nvml.ErrorString(ret)
}

func (d *nvmlDriver) versions() {
	if d.can("nvmlSystemGetDriverVersion") {
		d.driver, _ = d.lib.SystemGetDriverVersion()
	}
	if d.can("nvmlSystemGetNVMLVersion") {
		d.version, _ = d.lib.SystemGetNVMLVersion()
	}
	if d.can("nvmlSystemGetCudaDriverVersion") {
		if v, ret := d.lib.SystemGetCudaDriverVersion(); ret == nvml.SUCCESS {
			d.cuda = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
		}
	}
}

// enumerate finds the GPUs and reads what does not change of each.
func (d *nvmlDriver) enumerate() error {
	end := d.log.begin("nvmlDeviceGetCount", -1)
	count, ret := d.lib.DeviceGetCount()
	end()
	if ret != nvml.SUCCESS {
		return &openError{code: int(ret), text: fmt.Sprintf("cannot count the GPUs: %s (NVML code %d)", nvml.ErrorString(ret), ret)}
	}
	d.devices = d.devices[:0]
	for i := range count {
		d.devices = append(d.devices, d.identify(i))
	}
	return nil
}

// identify reads the identity of one GPU; one that does not answer keeps its
// place, with the reason.
func (d *nvmlDriver) identify(index int) device {
	it := device{is: GPU{Index: index}}
	end := d.log.begin("nvmlDeviceGetHandleByIndex", index)
	handle, ret := d.lib.DeviceGetHandleByIndex(index)
	end()
	if ret != nvml.SUCCESS {
		refused(&it.is, "nvmlDeviceGetHandleByIndex", ret)
		return it
	}
	it.handle = handle
	d.identity(&it.is, handle)
	if d.can("nvmlDeviceGetMigMode") {
		mode, _, ret := handle.GetMigMode()
		it.mig = ret == nvml.SUCCESS && mode == nvml.DEVICE_MIG_ENABLE
	}
	return it
}

func (d *nvmlDriver) identity(g *GPU, handle nvml.Device) {
	if d.can("nvmlDeviceGetUUID") {
		uuid, ret := handle.GetUUID()
		g.UUID = uuid
		refused(g, "nvmlDeviceGetUUID", ret)
	}
	if d.can("nvmlDeviceGetName") {
		g.Name, _ = handle.GetName()
	}
	if d.can("nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo") {
		if pci, ret := handle.GetPciInfo(); ret == nvml.SUCCESS {
			g.PCI = cString(pci.BusId[:])
		}
	}
}

func cString[B byte | int8](b []B) string {
	var s strings.Builder
	for _, c := range b {
		if c == 0 {
			break
		}
		s.WriteByte(byte(c))
	}
	return s.String()
}

func (d *nvmlDriver) sample(full bool, quit <-chan struct{}) Sample {
	began := time.Now()
	s := Sample{At: began, Driver: d.driver, NVML: d.version, CUDA: d.cuda}
	if full {
		d.reviveLost()
	}
	for i := range d.devices {
		select {
		case <-quit:
			return s
		default:
		}
		s.GPUs = append(s.GPUs, d.read(&d.devices[i], full))
	}
	s.Took = time.Since(began)
	return s
}

// reviveLost looks again for GPUs that did not answer: a reset brings them
// back under a new handle. Only where somebody asked for a full sample: with a
// dead GPU each such look can take most of a minute.
func (d *nvmlDriver) reviveLost() {
	for i := range d.devices {
		it := &d.devices[i]
		if it.handle != nil && !it.is.Lost {
			continue
		}
		again := d.identify(i)
		if again.is.UUID == "" { // still lost: who it was is known all the same
			again.is.UUID, again.is.Name, again.is.PCI = it.is.UUID, it.is.Name, it.is.PCI
		}
		*it = again
		d.xids.add(d, again)
	}
}

func (d *nvmlDriver) close() {
	d.xids.free(d)
	d.lib.Shutdown()
}
