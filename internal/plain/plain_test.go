package plain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
)

func TestErrorNamesNoFile(t *testing.T) {
	path := t.TempDir() + "/missing"
	_, err := os.Open(path)
	if got := Error(fmt.Errorf("cannot read: %w", err)); got.Error() != "no such file or directory" || !errors.Is(got, fs.ErrNotExist) {
		t.Errorf("of a file that is missing is left: %v", got)
	}
	if own := errors.New("too long"); Error(own) != own {
		t.Errorf("an error of no file is now: %v", Error(own))
	}
	if Error(nil) != nil {
		t.Error("nothing went wrong, and an error is told")
	}
}
