package supervisor

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// tuningCache matches the line by which SGLang, from v0.5.12 on, names the
// cache of a rank's autotune: a file, later a folder. Nothing else that a
// server may print is ever renamed.
var tuningCache = regexp.MustCompile(`Running FlashInfer autotune .*?(?:with cache|writing fresh result to): ` +
	`(/[^\x1b\r\n]*/flashinfer/autotune/[^\x1b\r\n]*/rank_[^/\x1b\r\n]+)`)

// asideMark is what the name of a cache gets that was put aside.
const asideMark = ".wrong-answers-"

// startOfLog bounds what is read for the names: autotune is over before ready.
const startOfLog = 64 << 20

// setTuningAside renames the autotune caches that an attempt has used, so that
// nobody loads again what gave wrong answers. Nothing is deleted; a server that
// runs has loaded its own long ago.
func (h *Hands) setTuningAside(attempt int) {
	caches, err := tuningCaches(h.attemptFolder(attempt).Log())
	if err != nil {
		h.note("patch", fmt.Sprintf("cannot put autotune caches aside: %v", err))
		return
	}
	var moved []string
	for _, path := range caches {
		switch err := os.Rename(path, path+asideMark+h.launch.ID); {
		case err == nil:
			moved = append(moved, path)
		case !os.IsNotExist(err):
			h.note("patch", fmt.Sprintf("cannot put an autotune cache aside: %v", err))
		}
	}
	if len(moved) > 0 {
		h.note("patch", fmt.Sprintf("put aside as *%s%s: %s", asideMark, h.launch.ID, strings.Join(moved, ", ")))
	}
}

// tuningCaches reads from an attempt's log which caches its ranks have used.
func tuningCaches(log string) ([]string, error) {
	f, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var caches []string
	lines := bufio.NewReaderSize(io.LimitReader(f, startOfLog), 64<<10)
	for {
		line, err := lines.ReadSlice('\n') // of a longer line the pieces are read one by one
		if m := tuningCache.FindSubmatch(line); m != nil {
			if path := filepath.Clean(strings.TrimSpace(string(m[1]))); !slices.Contains(caches, path) {
				caches = append(caches, path)
			}
		}
		if err != nil && err != bufio.ErrBufferFull {
			break
		}
	}
	return caches, nil
}
