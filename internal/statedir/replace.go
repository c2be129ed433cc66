package statedir

import (
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Replace gives the file of this path new content at one blow, durably: whoever
// looks finds the old or the new, also after a power cut. The file is 0600.
//
// What is not yet whole lies beside it, never in $TMPDIR: that folder is shared,
// and may be full or gone where the state directory is neither.
func Replace(path string, data []byte) error {
	return renameio.WriteFile(path, data, FileMode, renameio.WithTempDir(filepath.Dir(path)))
}
