package gpu

import "fmt"

// XidAction is what has to happen after an Xid before its GPU can be relied on.
type XidAction string

// The actions, from harmless to hopeless.
const (
	XidIgnore     XidAction = "ignore"      // a trace of something else, or of the end of a process
	XidRestartApp XidAction = "restart_app" // the process is lost, the GPU is not
	XidAskDriver  XidAction = "ask_driver"  // depends on details that the driver sums up in GPU.Recovery
	XidResetGPU   XidAction = "reset_gpu"   // the GPU needs a reset before it is used again
	XidReboot     XidAction = "reboot"      // the node, or the virtual machine, needs a reboot
	XidInspect    XidAction = "inspect"     // a person has to look at power or cabling
	XidUnknown    XidAction = "unknown"     // not in the table
)

// Relaunch tells whether starting the server again has a chance before a
// person has done something. What is unknown leaves it a chance.
func (a XidAction) Relaunch() bool {
	switch a {
	case XidResetGPU, XidReboot, XidInspect:
		return false
	}
	return true
}

// xidEntry is one line of the table.
type xidEntry struct {
	what   string
	action XidAction
}

// xids is the immediate action of NVIDIA's catalogue of Xid errors for Ampere
// and newer GPUs (docs.nvidia.com/deploy/xid-errors, "Analyzing Xid Errors with
// the Xid Catalog", as of October 2025), for the codes that a compute server can
// meet. Where the catalogue points to a workflow or gives no action, the driver is
// asked, and where it does not tell, a relaunch has its chance.
var xids = map[int]xidEntry{
	8:   {"the GPU stopped processing", XidRestartApp},
	11:  {"invalid push buffer stream", XidRestartApp},
	13:  {"graphics engine exception, mostly an illegal access by the application", XidRestartApp},
	25:  {"illegal push buffer stream", XidRestartApp},
	31:  {"GPU memory page fault, mostly an illegal address of the application", XidRestartApp},
	32:  {"corrupted push buffer stream", XidRestartApp},
	37:  {"driver firmware error", XidIgnore},
	38:  {"driver firmware error", XidIgnore},
	39:  {"copy engine exception", XidRestartApp},
	40:  {"copy engine exception", XidRestartApp},
	41:  {"copy engine exception", XidRestartApp},
	43:  {"the application met a fault of its own and was stopped", XidIgnore},
	44:  {"graphics engine fault during a context switch", XidIgnore},
	45:  {"the application was ended, by a signal or after another Xid", XidIgnore},
	46:  {"the GPU stopped processing", XidResetGPU},
	48:  {"double-bit ECC error", XidResetGPU},
	54:  {"auxiliary power is not connected", XidInspect},
	60:  {"video processor exception", XidRestartApp},
	62:  {"internal micro-controller halt", XidResetGPU},
	63:  {"a memory row was marked for remapping", XidIgnore},
	64:  {"a memory row could not be remapped", XidResetGPU},
	66:  {"illegal access by the driver", XidIgnore},
	67:  {"illegal access by the driver", XidIgnore},
	68:  {"video decoder exception", XidRestartApp},
	69:  {"graphics engine class error", XidRestartApp},
	70:  {"copy engine error", XidRestartApp},
	71:  {"copy engine error", XidRestartApp},
	72:  {"copy engine error", XidRestartApp},
	74:  {"NVLink error", XidAskDriver},
	75:  {"copy engine error", XidRestartApp},
	76:  {"copy engine error", XidRestartApp},
	77:  {"copy engine error", XidRestartApp},
	79:  {"the GPU has fallen off the bus", XidReboot},
	80:  {"corrupted data was sent to the GPU", XidRestartApp},
	82:  {"JPEG engine error", XidRestartApp},
	83:  {"video decoder error", XidRestartApp},
	84:  {"video decoder error", XidRestartApp},
	85:  {"copy engine error", XidRestartApp},
	86:  {"optical flow engine error", XidRestartApp},
	88:  {"video decoder error", XidRestartApp},
	89:  {"video decoder error", XidRestartApp},
	92:  {"high rate of single-bit ECC errors", XidIgnore},
	93:  {"wear limit of the information ROM exceeded", XidIgnore},
	94:  {"contained memory error", XidRestartApp},
	95:  {"uncontained memory error", XidResetGPU},
	96:  {"video decoder error", XidRestartApp},
	97:  {"video decoder error", XidRestartApp},
	98:  {"video decoder error", XidRestartApp},
	99:  {"JPEG engine error", XidRestartApp},
	100: {"JPEG engine error", XidRestartApp},
	101: {"JPEG engine error", XidRestartApp},
	102: {"JPEG engine error", XidRestartApp},
	103: {"JPEG engine error", XidRestartApp},
	104: {"JPEG engine error", XidRestartApp},
	105: {"JPEG engine error", XidRestartApp},
	109: {"context switch timeout", XidResetGPU},
	110: {"security fault", XidResetGPU},
	119: {"the GPU's system processor (GSP) does not answer", XidResetGPU},
	120: {"the GPU's system processor (GSP) failed", XidResetGPU},
	121: {"corrected error on the link to the CPU", XidIgnore},
	126: {"copy engine error", XidRestartApp},
	127: {"copy engine error", XidRestartApp},
	128: {"copy engine error", XidRestartApp},
	129: {"copy engine error", XidRestartApp},
	130: {"copy engine error", XidRestartApp},
	131: {"copy engine error", XidRestartApp},
	132: {"copy engine error", XidRestartApp},
	133: {"copy engine error", XidRestartApp},
	134: {"copy engine error", XidRestartApp},
	135: {"copy engine error", XidRestartApp},
	136: {"link training failed", XidResetGPU},
	137: {"illegal access over NVLink, mostly by the application", XidIgnore},
	139: {"optical flow engine error", XidRestartApp},
	140: {"ECC error that could not be recovered", XidResetGPU},
	141: {"CUDA fast path error", XidIgnore},
	143: {"the GPU could not be initialised", XidResetGPU},
	144: {"NVLink error (SAW)", XidAskDriver},
	145: {"NVLink error (RLW)", XidAskDriver},
	146: {"NVLink error (TLW)", XidAskDriver},
	147: {"NVLink error (TREX)", XidAskDriver},
	148: {"NVLink error (NVLPW)", XidAskDriver},
	149: {"NVLink error (NETIR)", XidAskDriver},
	150: {"NVLink error (MSE)", XidAskDriver},
	151: {"key rotation failed", XidReboot},
	154: {"the GPU's recovery action changed", XidAskDriver},
	155: {"NVLink was taken down by software", XidResetGPU},
	156: {"a resource of the GPU was retired", XidResetGPU},
	157: {"a resource of the GPU could not be retired", XidIgnore},
	158: {"fatal timeout of the GPU", XidResetGPU},
	159: {"error of the link to the CPU, without data", XidAskDriver},
	160: {"a channel was retired", XidIgnore},
	161: {"a channel could not be retired", XidIgnore},
	162: {"power smoothing is back", XidIgnore},
	163: {"power smoothing is off", XidIgnore},
	164: {"power smoothing is near its end of life", XidIgnore},
	165: {"power smoothing has reached its end of life", XidIgnore},
	167: {"fatal timeout on the PCIe bus", XidAskDriver},
	168: {"less memory than there should be: errors in a protected region", XidAskDriver},
	169: {"internal micro-controller halt", XidAskDriver},
	171: {"uncorrectable error in the GPU's memory", XidAskDriver},
	172: {"uncorrectable error in the GPU's caches", XidAskDriver},
}

// Action says what is to be done about the Xid. now is the same GPU as it
// answers afterwards: where the driver says what recovery it wants, its word
// counts, not the table's. A zero GPU is one that was not asked.
func (x Xid) Action(now GPU) XidAction {
	action := x.byTable()
	wanted := now.Recovery
	if x.Recovery.Above(recoveryNone) { // newer than any sample
		wanted = x.Recovery
	}
	switch {
	case now.Lost:
		return XidReboot
	case !wanted.Known:
		return action
	case wanted.Is(recoveryNone):
		if !action.Relaunch() || action == XidAskDriver {
			return XidRestartApp
		}
		return action
	case wanted.Is(recoveryReboot) || wanted.Is(recoverySystemReboot):
		return XidReboot
	}
	return XidResetGPU
}

// byTable is what the catalogue says, with what the line in the log adds.
func (x Xid) byTable() XidAction {
	switch {
	case x.Fatal:
		return XidResetGPU
	case x.Harmless:
		return XidIgnore
	}
	if e, ok := xids[x.Code]; ok {
		return e.action
	}
	return XidUnknown
}

// String names the Xid in words.
func (x Xid) String() string {
	where := "an unknown GPU"
	if x.Index >= 0 {
		where = fmt.Sprintf("GPU %d", x.Index)
	}
	if e, ok := xids[x.Code]; ok {
		return fmt.Sprintf("Xid %d on %s: %s", x.Code, where, e.what)
	}
	return fmt.Sprintf("Xid %d on %s", x.Code, where)
}
