package preflight

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sglaunch/internal/plain"
)

// weights is what lies in the folder of a checkpoint.
type weights struct {
	dir     string
	bytes   uint64 // of all weight files
	files   int
	missing []string // that the index or the numbering promises
	refused []string // that this user may not read
	broken  []broken
	err     error // why the folder could not be read
}

// broken is a weight file that cannot be loaded.
type broken struct {
	name, why string
}

// weightFiles are the endings of the formats that SGLang loads, best first; of
// several it takes the first.
var weightFiles = []string{".safetensors", ".bin", ".pt", ".gguf"}

// indexFile lists the shards of a safetensors checkpoint.
const indexFile = "model.safetensors.index.json"

// readWeights looks at the weight files of a folder; of safetensors it reads
// the headers, which tell how long each file has to be.
func readWeights(dir string) weights {
	w := weights{dir: dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		w.err = err
		return w
	}
	var names []string
	for _, ending := range weightFiles {
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ending) && e.Name() != "training_args.bin" {
				names = append(names, e.Name())
			}
		}
		if len(names) > 0 {
			break
		}
	}
	for _, name := range promised(dir, names) {
		if !slices.Contains(names, name) {
			w.missing = append(w.missing, name)
		}
	}
	for _, name := range names {
		w.file(name)
	}
	return w
}

// shardName is the usual name of one of several files.
var shardName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})(\..*)$`)

// promised are the files that should be there: by the index, else by the
// numbers in the names that are.
func promised(dir string, names []string) []string {
	if text, err := os.ReadFile(filepath.Join(dir, indexFile)); err == nil {
		var index struct {
			Map map[string]string `json:"weight_map"`
		}
		if json.Unmarshal(text, &index) == nil && len(index.Map) > 0 {
			files := map[string]bool{}
			for _, file := range index.Map {
				files[file] = true
			}
			return sorted(files)
		}
	}
	files := map[string]bool{}
	for _, name := range names {
		m := shardName.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		for i := range number(m[3]) {
			files[fmt.Sprintf("%s-%05d-of-%s%s", m[1], i+1, m[3], m[4])] = true
		}
	}
	return sorted(files)
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

func sorted(set map[string]bool) []string {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// file looks at one weight file.
func (w *weights) file(name string) {
	path := filepath.Join(w.dir, name)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // a link that leads nowhere
		w.missing = append(w.missing, name)
		return
	case errors.Is(err, fs.ErrPermission):
		w.refused = append(w.refused, name)
		return
	case err != nil:
		w.broken = append(w.broken, broken{name, plain.Error(err).Error()})
		return
	case !info.Mode().IsRegular():
		return
	}
	w.files++
	w.bytes += uint64(info.Size())
	f, err := os.Open(path)
	if err != nil {
		w.refused = append(w.refused, name)
		return
	}
	defer f.Close()
	if why := damage(f, info.Size(), strings.HasSuffix(name, ".safetensors")); why != "" {
		w.broken = append(w.broken, broken{name, why})
	}
}

// lfsHead begins the file that Git puts in place of a large one that was not
// fetched.
const lfsHead = "version https://git-lfs"

// maxHeader is the bound that the safetensors library sets.
const maxHeader = 100_000_000

// damage says why a weight file cannot be loaded; "" where nothing is known
// against it.
func damage(f io.ReaderAt, length int64, safetensors bool) string {
	head := make([]byte, len(lfsHead))
	n, _ := f.ReadAt(head, 0)
	switch {
	case string(head[:n]) == lfsHead:
		return "a Git LFS pointer, not the file itself"
	case length == 0:
		return "an empty file"
	case !safetensors:
		return ""
	case length < 8:
		return fmt.Sprintf("only %d bytes long", length)
	}
	header := binary.LittleEndian.Uint64(head)
	if header > maxHeader || int64(header) > length-8 {
		return fmt.Sprintf("%d bytes long, with a header of %d", length, header)
	}
	return incomplete(io.NewSectionReader(f, 8, int64(header)), length-8-int64(header))
}

// incomplete compares a safetensors header with the bytes that follow it.
func incomplete(header io.Reader, data int64) string {
	var tensors map[string]struct {
		Offsets []int64 `json:"data_offsets"`
	}
	if err := json.NewDecoder(header).Decode(&tensors); err != nil {
		return "a header that is no JSON"
	}
	var end int64
	for _, t := range tensors {
		if len(t.Offsets) == 2 {
			end = max(end, t.Offsets[1])
		}
	}
	if end != data {
		return fmt.Sprintf("%d bytes of tensors, where its header promises %d", data, end)
	}
	return ""
}
