package patch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The journal is a file of lines, each a checksum and a JSON record, made
// durable one by one before what they announce is done. A last line that a
// crash cut short is not there. What the records add up to is a book.

// record is one line. Kind says which of the other fields count.
type record struct {
	Kind    string    `json:"kind"`
	Time    time.Time `json:"time"`
	Owner   *Owner    `json:"owner,omitempty"`   // apply
	Entries []*entry  `json:"entries,omitempty"` // apply: files about to change
	Paths   []string  `json:"paths,omitempty"`   // apply: all files of the launch, shared ones included
	Overlay string    `json:"overlay,omitempty"` // apply: folder of imported copies
	Copied  []string  `json:"copied,omitempty"`  // apply: files of which the overlay has copies
	Launch  string    `json:"launch,omitempty"`  // applied, released
	Path    string    `json:"path,omitempty"`    // restored, drifted, kept
	Book    *book     `json:"book,omitempty"`    // snapshot
}

// The kinds of records.
const (
	recApply    = "apply"    // about to write
	recApplied  = "applied"  // written and verified
	recRestored = "restored" // the file is as it was
	recDrifted  = "drifted"  // the file is somebody else's now
	recReleased = "released" // the launch needs its files no more
	recSnapshot = "snapshot" // stands for all records before it
)

// entry is a file that holds patched content of ours, or is about to.
type entry struct {
	Path    string   `json:"path"`
	Lock    string   `json:"lock"` // folder whose lock guards it
	Before  string   `json:"before"`
	After   string   `json:"after"`
	Node    inode    `json:"node"`            // of the original
	Written int64    `json:"written"`         // mtime given to the patched file
	Temp    string   `json:"temp"`            // beside the target
	Link    string   `json:"saved,omitempty"` // hard link of the original, in the ledger
	Caches  []string `json:"caches,omitempty"`
	Pycs    []saved  `json:"pycs,omitempty"`
	Folders []folder `json:"folders"`
	Keep    bool     `json:"keep,omitempty"`
	Patches []string `json:"patches"`
	Module  string   `json:"module,omitempty"`
}

// saved is a bytecode file put aside.
type saved struct {
	Path string `json:"path"`
	Sum  string `json:"sum"`
	Node inode  `json:"node"`
	Link string `json:"saved,omitempty"`
}

// lease is a launch that needs files patched.
type lease struct {
	Owner   Owner     `json:"owner"`
	Paths   []string  `json:"paths"`
	Overlay string    `json:"overlay,omitempty"`
	Copied  []string  `json:"copied,omitempty"`
	Since   time.Time `json:"since"`
	Done    bool      `json:"done"` // applied and verified
}

// drift is a file of ours that somebody changed: reported until the next patch
// of that file, its original kept as long.
type drift struct {
	Path   string    `json:"path"`
	Before string    `json:"before"` // hash of the original, in the ledger
	After  string    `json:"after"`
	At     time.Time `json:"at"`
	Entry  *entry    `json:"entry,omitempty"` // what a forced revert needs; a journal of before has none
}

// book is what the journal adds up to.
type book struct {
	Entries map[string]*entry `json:"entries"` // by path
	Leases  map[string]*lease `json:"leases"`  // by launch
	Drifts  map[string]*drift `json:"drifts"`  // by path
	Used    map[string]int64  `json:"used"`    // by path: latest mtime ever given, seconds
}

func newBook() *book {
	return &book{map[string]*entry{}, map[string]*lease{}, map[string]*drift{}, map[string]int64{}}
}

// entry returns the record of a path; a nil book has none.
func (b *book) entry(path string) *entry {
	if b == nil {
		return nil
	}
	return b.Entries[path]
}

// holders lists the launches that need a path patched, sorted.
func (b *book) holders(path string) []string {
	var launches []string
	for name, l := range b.Leases {
		if slices.Contains(l.Paths, path) {
			launches = append(launches, name)
		}
	}
	slices.Sort(launches)
	return launches
}

// copier names another launch that imports a copy of a file, "" where there is
// none. Its copy is good for the content that the file has now.
func (b *book) copier(path, launch string) string {
	for _, name := range b.launches() {
		if name != launch && slices.Contains(b.Leases[name].Copied, path) {
			return name
		}
	}
	return ""
}

func (e *entry) holders(b *book) string {
	if launches := b.holders(e.Path); len(launches) > 0 {
		return strings.Join(launches, " and ")
	}
	return "nobody any more"
}

func (b *book) add(r record) {
	switch r.Kind {
	case recApply:
		for _, e := range r.Entries {
			b.Entries[e.Path] = e
			b.Used[e.Path] = max(b.Used[e.Path], e.Written/int64(time.Second))
			delete(b.Drifts, e.Path)
		}
		b.Leases[r.Owner.Launch] = &lease{Owner: *r.Owner, Paths: r.Paths, Overlay: r.Overlay, Copied: r.Copied, Since: r.Time}
	case recApplied:
		if l := b.Leases[r.Launch]; l != nil {
			l.Done = true
		}
	case recRestored:
		delete(b.Entries, r.Path)
		delete(b.Drifts, r.Path)
	case recDrifted:
		if e := b.Entries[r.Path]; e != nil {
			kept := *e
			kept.Link, kept.Pycs = "", nil // a copy of the original is enough, Python compiles it again
			b.Drifts[r.Path] = &drift{r.Path, e.Before, e.After, r.Time, &kept}
		}
		delete(b.Entries, r.Path)
	case recReleased:
		delete(b.Leases, r.Launch)
	case recSnapshot:
		*b = *r.Book // in place: a session holds on to its book
	}
}

const sumDigits = 16

// encode gives the line of a record.
func (r record) encode() ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%s %s\n", Hash(body)[:sumDigits], body), nil
}

func decode(line []byte) (record, error) {
	sum, body, ok := bytes.Cut(line, []byte(" "))
	if !ok || string(sum) != Hash(body)[:sumDigits] {
		return record{}, errors.New("its checksum is wrong")
	}
	var r record
	if err := json.Unmarshal(body, &r); err != nil {
		return record{}, err
	}
	if !r.whole() {
		return record{}, fmt.Errorf("a record %q without its content", r.Kind)
	}
	return r, nil
}

func (r record) whole() bool {
	switch r.Kind {
	case recApply:
		return r.Owner != nil && !slices.Contains(r.Entries, nil)
	case recSnapshot:
		b := r.Book
		return b != nil && b.Entries != nil && b.Leases != nil && b.Drifts != nil && b.Used != nil
	}
	return true
}

// fold reads a journal. size is where the good part ends; what follows is a
// line that a crash cut short. Damage before the last line is an error: what it
// said is lost, and with it perhaps a file to restore.
func fold(content []byte) (b *book, size int64, records int, err error) {
	b = newBook()
	for at := 0; at < len(content); records++ {
		end := bytes.IndexByte(content[at:], '\n')
		if end < 0 {
			break
		}
		r, err := decode(content[at : at+end])
		if err != nil {
			if at+end+1 == len(content) {
				break // whole in length, torn within: blocks of one write land in any order
			}
			return nil, 0, 0, fmt.Errorf("line %d is damaged: %w", records+1, err)
		}
		b.add(r)
		at += end + 1
		size = int64(at)
	}
	return b, size, records, nil
}

// journal is an open journal, owned by the holder of the ledger's lock.
type journal struct {
	disk    disk
	path    string
	book    *book
	size    int64
	records int
}

// maxRecords is when a journal is worth folding into one record.
const maxRecords = 256

func openJournal(d disk, path string) (*journal, error) {
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	j := &journal{disk: d, path: path}
	j.book, j.size, j.records, err = fold(content)
	if err != nil {
		return nil, fmt.Errorf("cannot read the journal %s: %w", path, err)
	}
	if j.size < int64(len(content)) {
		return j, d.Truncate(path, j.size)
	}
	return j, nil
}

// add makes a record durable, then counts it in. A record that could not be
// written whole is taken away again.
func (j *journal) add(r record) error {
	r.Time = r.Time.UTC()
	line, err := r.encode()
	if err != nil {
		return err
	}
	if err := j.append(line); err != nil {
		return fmt.Errorf("cannot write the journal: %w", errors.Join(err, j.disk.Truncate(j.path, j.size)))
	}
	j.size += int64(len(line))
	j.records++
	j.book.add(r)
	return nil
}

func (j *journal) append(line []byte) error {
	f, err := j.disk.Append(j.path)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil && j.size == 0 {
		err = j.disk.Sync(filepath.Dir(j.path))
	}
	return err
}

// compact folds a long journal into one record, by a new file renamed over it.
func (j *journal) compact(now time.Time) error {
	if j.records < maxRecords {
		return nil
	}
	line, err := record{Kind: recSnapshot, Time: now.UTC(), Book: j.book}.encode()
	if err != nil {
		return err
	}
	fresh := j.path + ".new"
	if err := removeIfThere(j.disk, fresh); err != nil {
		return err
	}
	next := &journal{disk: j.disk, path: fresh}
	if err := next.append(line); err != nil {
		return errors.Join(err, removeIfThere(j.disk, fresh))
	}
	if err := j.disk.Rename(fresh, j.path); err != nil {
		return err
	}
	j.size, j.records = int64(len(line)), 1
	return j.disk.Sync(filepath.Dir(j.path))
}
