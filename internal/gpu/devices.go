package gpu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sglaunch/internal/sglangcmd"
)

// Devices picks, of all GPUs, those that the command will use, in the order of
// its ranks. note says in words what could not be found out or does not fit;
// then the choice is a guess on the wide side.
//
// CUDA's own numbering is assumed to be NVML's (CUDA_DEVICE_ORDER=PCI_BUS_ID,
// or GPUs that are all alike); where it may differ, note says so.
func Devices(cmd sglangcmd.Command, all []GPU) (picked []GPU, note string) {
	picked, note = visible(cmd, all)
	if !cmd.SGLang() || len(picked) == 0 {
		return picked, note
	}
	server := cmd.Server()
	var used []GPU
	for i := range server.GPUs() {
		at := server.BaseGPU + i*server.GPUStep
		if at < 0 || at >= len(picked) {
			missing := fmt.Sprintf("the command wants %d GPUs from %d on, and %d are visible", server.GPUs(), server.BaseGPU, len(picked))
			return picked, join(note, missing)
		}
		used = append(used, picked[at])
	}
	if note == "" && len(used) < len(all) && mixed(all) && !pciOrder(cmd) {
		note = "the GPUs differ, so CUDA may number them in another order; set CUDA_DEVICE_ORDER=PCI_BUS_ID"
	}
	return used, note
}

func join(notes ...string) string {
	notes = slices.DeleteFunc(notes, func(s string) bool { return s == "" })
	return strings.Join(notes, "; ")
}

// Select picks the GPUs and MIG instances with the given UUIDs, in that order.
// As with CUDA, the beginning of a UUID is enough if it is unique.
func Select(uuids []string, all []GPU) ([]GPU, error) {
	var picked []GPU
	for _, uuid := range uuids {
		g, err := byPrefix(uuid, all)
		if err != nil {
			return nil, err
		}
		picked = append(picked, g)
	}
	return picked, nil
}

func byPrefix(uuid string, all []GPU) (GPU, error) {
	var found []GPU
	for _, g := range all {
		for _, g := range append([]GPU{g}, g.Instances...) {
			if g.UUID == uuid {
				return g, nil
			}
			if uuid != "" && strings.HasPrefix(g.UUID, uuid) {
				found = append(found, g)
			}
		}
	}
	switch len(found) {
	case 0:
		return GPU{}, fmt.Errorf("cannot find a GPU with the UUID %q", uuid)
	case 1:
		return found[0], nil
	}
	return GPU{}, fmt.Errorf("cannot tell which GPU %q is: %d begin so", uuid, len(found))
}

// visible applies CUDA_VISIBLE_DEVICES as CUDA does: the list ends at its first
// invalid entry.
func visible(cmd sglangcmd.Command, all []GPU) ([]GPU, string) {
	list, set := cmd.Getenv("CUDA_VISIBLE_DEVICES")
	if !set {
		return flatten(all), ""
	}
	var picked []GPU
	for _, word := range strings.Split(list, ",") {
		word = strings.TrimSpace(word)
		g, err := one(word, all)
		switch {
		case err == nil:
		case word != "" && word != "-1":
			return picked, fmt.Sprintf("CUDA_VISIBLE_DEVICES=%q: %v; CUDA ignores the rest of the list", list, err)
		case len(picked) == 0:
			return nil, "CUDA_VISIBLE_DEVICES hides every GPU"
		default:
			return picked, ""
		}
		picked = append(picked, g)
	}
	return picked, ""
}

// one finds what one word of CUDA_VISIBLE_DEVICES names.
func one(word string, all []GPU) (GPU, error) {
	if strings.HasPrefix(word, "GPU-") || strings.HasPrefix(word, "MIG-") {
		return byPrefix(word, all)
	}
	index, err := strconv.Atoi(word)
	devices := flatten(all)
	if err != nil || index < 0 || index >= len(devices) {
		return GPU{}, fmt.Errorf("cannot find a GPU %q", word)
	}
	return devices[index], nil
}

// flatten lists the devices that CUDA numbers: a partitioned GPU counts only
// by its instances.
func flatten(all []GPU) []GPU {
	var devices []GPU
	for _, g := range all {
		if len(g.Instances) > 0 {
			devices = append(devices, g.Instances...)
			continue
		}
		devices = append(devices, g)
	}
	return devices
}

func mixed(all []GPU) bool {
	return slices.ContainsFunc(all, func(g GPU) bool { return g.Name != all[0].Name })
}

func pciOrder(cmd sglangcmd.Command) bool {
	order, _ := cmd.Getenv("CUDA_DEVICE_ORDER")
	return order == "PCI_BUS_ID"
}
