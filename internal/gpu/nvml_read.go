//go:build cgo

package gpu

import (
	"fmt"
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// notAvailable is NVML's way to say that it does not tell a figure.
const notAvailable = math.MaxUint64

// figure is one reading of a GPU: the functions it needs, and how it is got.
type figure struct {
	needs []string // any one of them
	read  func(nvml.Device, *GPU) nvml.Return
}

// figures are read in each round, in this order: what decides comes first.
var figures = []figure{
	{[]string{"nvmlDeviceGetUtilizationRates"}, readUtil},
	{[]string{"nvmlDeviceGetPowerUsage"}, readPower},
	{[]string{"nvmlDeviceGetTemperature"}, readTemperature},
	{[]string{"nvmlDeviceGetClockInfo"}, readClocks},
	{[]string{"nvmlDeviceGetTotalEccErrors"}, readECC},
	{[]string{"nvmlDeviceGetRemappedRows"}, readRemapped},
	{[]string{"nvmlDeviceGetFieldValues"}, readRecovery},
	{[]string{"nvmlDeviceGetGpuFabricInfo"}, readFabric},
	{[]string{"nvmlDeviceGetEnforcedPowerLimit"}, readLimit},
	{[]string{"nvmlDeviceGetTotalEnergyConsumption"}, readEnergy},
	{[]string{"nvmlDeviceGetPerformanceState"}, readPState},
}

// read asks one GPU everything. A GPU that is lost is asked nothing more.
func (d *nvmlDriver) read(it *device, full bool) GPU {
	g := it.is
	if it.handle == nil {
		return g
	}
	d.readMemory(it.handle, &g)
	d.readThrottle(it.handle, &g)
	for _, f := range figures {
		if g.Lost {
			break
		}
		if !d.can(f.needs...) {
			continue
		}
		end := d.log.begin(f.needs[0], g.Index)
		ret := f.read(it.handle, &g)
		end()
		refused(&g, f.needs[0], ret)
	}
	if full && !g.Lost {
		d.readProcesses(it.handle, &g)
	}
	if it.mig && !g.Lost {
		g.Instances = d.instances(it.handle, g, full)
	}
	it.is.Lost = g.Lost
	return g
}

// refused notes why a GPU did not tell something. Not supported is no news.
func refused(g *GPU, call string, ret nvml.Return) {
	switch ret {
	case nvml.SUCCESS, nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND:
		return
	case nvml.ERROR_GPU_IS_LOST:
		g.Lost = true
	}
	if g.Err == "" {
		g.Err = fmt.Sprintf("%s: %s (NVML code %d)", call, nvml.ErrorString(ret), ret)
	}
}

// readMemory prefers the form that keeps the driver's own share apart.
func (d *nvmlDriver) readMemory(h nvml.Device, g *GPU) {
	if d.can("nvmlDeviceGetMemoryInfo_v2") {
		end := d.log.begin("nvmlDeviceGetMemoryInfo_v2", g.Index)
		m, ret := h.GetMemoryInfo_v2()
		end()
		if ret == nvml.SUCCESS {
			g.Total, g.Used, g.Free, g.Reserved = m.Total, m.Used, m.Free, m.Reserved
			return
		}
		if ret == nvml.ERROR_GPU_IS_LOST {
			refused(g, "nvmlDeviceGetMemoryInfo_v2", ret)
			return
		}
	}
	if !d.can("nvmlDeviceGetMemoryInfo") {
		return
	}
	end := d.log.begin("nvmlDeviceGetMemoryInfo", g.Index)
	m, ret := h.GetMemoryInfo()
	end()
	if ret == nvml.SUCCESS {
		g.Total, g.Used, g.Free = m.Total, m.Used, m.Free
	}
	refused(g, "nvmlDeviceGetMemoryInfo", ret)
}

func readUtil(h nvml.Device, g *GPU) nvml.Return {
	u, ret := h.GetUtilizationRates()
	if ret == nvml.SUCCESS {
		g.Util, g.MemUtil = Read(int64(u.Gpu)), Read(int64(u.Memory))
	}
	return ret
}

// number takes an answer that is one number.
func number[N uint32 | uint64](ask func() (N, nvml.Return), to *Reading) nvml.Return {
	n, ret := ask()
	if ret == nvml.SUCCESS {
		*to = Read(int64(n))
	}
	return ret
}

func readPower(h nvml.Device, g *GPU) nvml.Return { return number(h.GetPowerUsage, &g.PowerMW) }

func readLimit(h nvml.Device, g *GPU) nvml.Return { return number(h.GetEnforcedPowerLimit, &g.LimitMW) }

func readEnergy(h nvml.Device, g *GPU) nvml.Return {
	return number(h.GetTotalEnergyConsumption, &g.EnergyMJ)
}

func readPState(h nvml.Device, g *GPU) nvml.Return {
	state, ret := h.GetPerformanceState()
	if ret == nvml.SUCCESS && state != nvml.PSTATE_UNKNOWN {
		g.PState = Read(int64(state))
	}
	return ret
}

func readTemperature(h nvml.Device, g *GPU) nvml.Return {
	c, ret := h.GetTemperature(nvml.TEMPERATURE_GPU)
	if ret == nvml.SUCCESS {
		g.TempC = Read(int64(c))
	}
	return ret
}

func readClocks(h nvml.Device, g *GPU) nvml.Return {
	sm, ret := h.GetClockInfo(nvml.CLOCK_SM)
	if ret != nvml.SUCCESS {
		return ret
	}
	g.SMClock = Read(int64(sm))
	mem, ret := h.GetClockInfo(nvml.CLOCK_MEM)
	if ret == nvml.SUCCESS {
		g.MemClock = Read(int64(mem))
	}
	return ret
}

// readThrottle asks by the newer name of the two, where there is one.
func (d *nvmlDriver) readThrottle(h nvml.Device, g *GPU) {
	if g.Lost {
		return
	}
	read, call := h.GetCurrentClocksEventReasons, "nvmlDeviceGetCurrentClocksEventReasons"
	if !d.can(call) {
		read, call = h.GetCurrentClocksThrottleReasons, "nvmlDeviceGetCurrentClocksThrottleReasons"
	}
	if !d.can(call) {
		return
	}
	end := d.log.begin(call, g.Index)
	mask, ret := read()
	end()
	if ret == nvml.SUCCESS {
		g.Throttle = Read(int64(mask))
	}
	refused(g, call, ret)
}

func readECC(h nvml.Device, g *GPU) nvml.Return {
	n, ret := h.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC)
	if ret != nvml.SUCCESS {
		return ret
	}
	g.ECCCorrected = Read(int64(n))
	n, ret = h.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	if ret == nvml.SUCCESS {
		g.ECCUncorrected = Read(int64(n))
	}
	return ret
}

func readRemapped(h nvml.Device, g *GPU) nvml.Return {
	corrected, uncorrected, pending, failed, ret := h.GetRemappedRows()
	if ret == nvml.SUCCESS {
		g.Remapped = Remapped{
			Corrected:   Read(int64(corrected)),
			Uncorrected: Read(int64(uncorrected)),
			Pending:     pending,
			Failed:      failed,
		}
	}
	return ret
}

// readRecovery reads what the driver thinks is needed to use the GPU again.
// Drivers before 570 do not know the field, which is not an error.
func readRecovery(h nvml.Device, g *GPU) nvml.Return {
	values := []nvml.FieldValue{{FieldId: nvml.FI_DEV_GET_GPU_RECOVERY_ACTION}}
	ret := h.GetFieldValues(values)
	if ret == nvml.SUCCESS && nvml.Return(values[0].NvmlReturn) == nvml.SUCCESS {
		g.Recovery = Read(int64(values[0].Value[0]))
	}
	if ret == nvml.ERROR_INVALID_ARGUMENT {
		return nvml.SUCCESS
	}
	return ret
}

func readFabric(h nvml.Device, g *GPU) nvml.Return {
	f, ret := h.GetGpuFabricInfo()
	if ret != nvml.SUCCESS {
		return ret
	}
	switch f.State {
	case nvml.GPU_FABRIC_STATE_NOT_STARTED:
		g.Fabric = FabricNotStarted
	case nvml.GPU_FABRIC_STATE_IN_PROGRESS:
		g.Fabric = FabricInProgress
	case nvml.GPU_FABRIC_STATE_COMPLETED:
		g.Fabric = FabricCompleted
		if status := nvml.Return(f.Status); status != nvml.SUCCESS {
			g.Fabric = nvml.ErrorString(status)
		}
	}
	return ret
}

// readProcesses merges the driver's three lists: a process with graphics and
// compute contexts stands in two of them with one figure.
func (d *nvmlDriver) readProcesses(h nvml.Device, g *GPU) {
	for _, list := range []struct {
		call string
		read func() ([]nvml.ProcessInfo, nvml.Return)
	}{
		{"nvmlDeviceGetComputeRunningProcesses", h.GetComputeRunningProcesses},
		{"nvmlDeviceGetMPSComputeRunningProcesses", h.GetMPSComputeRunningProcesses},
		{"nvmlDeviceGetGraphicsRunningProcesses", h.GetGraphicsRunningProcesses},
	} {
		if !d.can(list.call+"_v3", list.call+"_v2", list.call) {
			continue
		}
		end := d.log.begin(list.call, g.Index)
		infos, ret := list.read()
		end()
		refused(g, list.call, ret)
		if ret == nvml.SUCCESS {
			g.Processes = merge(g.Processes, infos)
		}
	}
}

func merge(list []Process, infos []nvml.ProcessInfo) []Process {
	if list == nil {
		list = []Process{}
	}
next:
	for _, info := range infos {
		p := Process{PID: int(info.Pid)}
		if info.UsedGpuMemory != notAvailable {
			p.Bytes = Read(int64(info.UsedGpuMemory))
		}
		for i := range list {
			if list[i].PID == p.PID {
				if p.Bytes.Value > list[i].Bytes.Value || !list[i].Bytes.Known {
					list[i].Bytes = p.Bytes
				}
				continue next
			}
		}
		list = append(list, p)
	}
	return list
}

// instances reads the MIG instances of a partitioned GPU.
func (d *nvmlDriver) instances(h nvml.Device, parent GPU, full bool) []GPU {
	if !d.can("nvmlDeviceGetMaxMigDeviceCount") || !d.can("nvmlDeviceGetMigDeviceHandleByIndex") {
		return nil
	}
	count, ret := h.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return nil
	}
	var found []GPU
	for i := range count {
		instance, ret := h.GetMigDeviceHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue
		}
		g := GPU{Index: parent.Index, Parent: parent.UUID, PCI: parent.PCI}
		d.identity(&g, instance)
		d.readMemory(instance, &g)
		if full {
			d.readProcesses(instance, &g)
		}
		found = append(found, g)
	}
	return found
}
