package gpu

import "fmt"

// States of the fabric of a GPU in an NVSwitch system. Until it is completed,
// every CUDA program on the GPU fails at its start (error 802).
const (
	FabricNotStarted = "not_started"
	FabricInProgress = "in_progress"
	FabricCompleted  = "completed"
)

// throttleReasons are the bits of GPU.Throttle that slow a GPU down against
// its will, by the words of nvidia-smi.
var throttleReasons = []struct {
	bit  int64
	name string
}{
	{0x004, "power cap"},
	{0x008, "hardware slowdown"},
	{0x010, "sync boost"},
	{0x020, "thermal slowdown (software)"},
	{0x040, "thermal slowdown (hardware)"},
	{0x080, "power brake"},
}

// ThrottleReasons names why the GPU runs slower than it could; nil where it
// does not, or where the driver does not tell. Idling and clocks set by a
// person are no reasons.
func (g GPU) ThrottleReasons() []string {
	if !g.Throttle.Known {
		return nil
	}
	var names []string
	for _, r := range throttleReasons {
		if g.Throttle.Value&r.bit != 0 {
			names = append(names, r.name)
		}
	}
	return names
}

// Values of GPU.Recovery that decide something here.
const (
	recoveryNone         = 0
	recoveryReboot       = 2
	recoverySystemReboot = 7
)

// recoveryActions are NVML's values of GPU.Recovery, as a person would ask for
// them.
var recoveryActions = []string{
	"", "reset the GPU", "reboot the node", "drain peer-to-peer traffic",
	"drain and reset the GPU", "recover the IMEX domain", "reset the GPU's bus",
	"reboot the system",
}

// RecoveryAction says what the driver asks for before the GPU can be used
// again; "" for nothing, or where it does not tell.
func (g GPU) RecoveryAction() string {
	v := g.Recovery
	switch {
	case !v.Known:
		return ""
	case v.Value >= 0 && v.Value < int64(len(recoveryActions)):
		return recoveryActions[v.Value]
	}
	return fmt.Sprintf("ask NVIDIA what recovery action %d means", v.Value)
}

// Worsened says in words what has gone wrong with the memory of a GPU between two
// samples. Failing memory looks like a hang of the server, or like wrong answers.
func Worsened(before, now GPU) []string {
	var news []string
	grown := func(a, b Reading) int64 {
		if !a.Known || !b.Known {
			return 0
		}
		return b.Value - a.Value
	}
	if n := grown(before.ECCUncorrected, now.ECCUncorrected); n > 0 {
		news = append(news, fmt.Sprintf("%d new uncorrected memory errors", n))
	}
	if n := grown(before.Remapped.Uncorrected, now.Remapped.Uncorrected); n > 0 {
		news = append(news, fmt.Sprintf("%d more memory rows remapped", n))
	}
	if now.Remapped.Pending && !before.Remapped.Pending {
		news = append(news, "memory rows wait for a reset to be remapped")
	}
	if now.Remapped.Failed && !before.Remapped.Failed {
		news = append(news, "no spare memory row is left")
	}
	return news
}

// Trouble says in words what makes the GPU unfit for a launch; "" where
// nothing is known to.
func (g GPU) Trouble() string {
	switch {
	case g.Lost:
		return "it has fallen off the bus"
	case g.RecoveryAction() != "":
		return "the driver asks to " + g.RecoveryAction()
	case g.Remapped.Failed:
		return "it has no spare memory rows left"
	case g.Fabric == FabricNotStarted || g.Fabric == FabricInProgress:
		return "its NVSwitch fabric is not up"
	case g.Fabric != "" && g.Fabric != FabricCompleted:
		return "its NVSwitch fabric failed: " + g.Fabric
	}
	return ""
}
