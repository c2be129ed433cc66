package shim_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The shim is the part that must not fail: it imports next to nothing.
func TestImportsNextToNothing(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "sglaunch/internal/shim").Output()
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{
		"sglaunch/internal/shim", "sglaunch/internal/shim/wire", "sglaunch/internal/proc", "sglaunch/internal/rawlog", "sglaunch/internal/mask",
		"github.com/creack/pty", "golang.org/x/sys/unix",
	}
	for name := range strings.FieldsSeq(string(out)) {
		first, _, _ := strings.Cut(name, "/")
		foreign := strings.Contains(first, ".") || first == "sglaunch"
		if foreign && !slices.Contains(allowed, name) {
			t.Errorf("the shim depends on %s", name)
		}
	}
}
