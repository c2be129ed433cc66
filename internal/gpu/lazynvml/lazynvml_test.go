//go:build cgo && linux && (amd64 || arm64)

package lazynvml

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"sglaunch/internal/rehearsal"
)

// A test binary that links go-nvml is as good as any other program: it has to
// start where the loader binds everything at once. If it does not, go-nvml
// calls functions that names.h lacks: run go generate.
func TestStartsWithEagerBinding(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "LD_BIND_NOW=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestFunctionsGoWhereTheyShould(t *testing.T) {
	if err := Load("/nonexistent/libnvidia-ml.so.1"); err == nil {
		t.Fatal("a library that does not exist was loaded")
	}
	const lacking = "nvmlDeviceGetFanSpeed"
	dir, err := rehearsal.BuildNVML(t.TempDir(), lacking)
	if err != nil {
		t.Fatal(err)
	}
	board := filepath.Join(t.TempDir(), "board")
	if err := (rehearsal.Board{GPUs: rehearsal.Machine(3)}).Write(board); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SGLAUNCH_REHEARSAL_NVML", board)
	path := filepath.Join(dir, "libnvidia-ml.so.1")
	if err := Load(path); err != nil {
		t.Fatal(err)
	}
	if Has(lacking) || !Has("nvmlInit_v2") {
		t.Error("what the library has is told wrongly")
	}
	lib := nvml.New(nvml.WithLibraryPath(path))
	if ret := lib.Init(); ret != nvml.SUCCESS {
		t.Fatal(ret)
	}
	defer lib.Shutdown()
	if n, ret := lib.DeviceGetCount(); n != 3 || ret != nvml.SUCCESS {
		t.Errorf("%d GPUs, %v", n, ret)
	}
	device, ret := lib.DeviceGetHandleByIndex(1)
	if ret != nvml.SUCCESS {
		t.Fatal(ret)
	}
	if index, ret := device.GetIndex(); index != 1 || ret != nvml.SUCCESS {
		t.Errorf("index %d, %v", index, ret)
	}
	if _, ret := device.GetFanSpeed(); ret != nvml.ERROR_FUNCTION_NOT_FOUND {
		t.Errorf("a function that is missing answers %d", ret)
	}
}
