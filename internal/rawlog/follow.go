package rawlog

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
)

// Follower reads an output that is written, from part to part. It is for one
// goroutine.
type Follower struct {
	path string
	file *os.File
	from int64 // offset of the file's first byte
	at   int64 // offset of the next byte to read
}

// Follow begins near the end: with the last so many lines of the newest part,
// or, where lines is negative, with the oldest byte that is kept.
func Follow(path string, lines int) (*Follower, error) {
	file, parts, err := openNewest(path)
	if err != nil {
		return nil, err
	}
	newest := parts[len(parts)-1]
	f := &Follower{path: path, file: file, from: newest.From, at: newest.From}
	if lines < 0 && len(parts) > 1 {
		_ = file.Close()
		f.from, f.at = parts[0].From, parts[0].From
		f.file, err = os.Open(parts[0].Path)
		return f, err
	}
	if lines >= 0 {
		skip, err := lastLines(file, lines)
		f.at += skip
		return f, err
	}
	return f, nil
}

// openNewest opens the part that is written. Its offset is known only where no
// rotation fell between the two looks: then it is the last of the parts.
func openNewest(path string) (*os.File, []Part, error) {
	parts, err := Parts(path)
	for err == nil {
		var file *os.File
		if file, err = os.Open(path); err != nil {
			break
		}
		var after []Part
		if after, err = Parts(path); err == nil && after[len(after)-1] == parts[len(parts)-1] {
			return file, after, nil
		}
		_ = file.Close()
		parts = after
	}
	return nil, nil, err
}

// tailReach bounds how far back the last lines are looked for.
const tailReach = 256 << 10

// lastLines is the offset of the last so many lines of a file.
func lastLines(file *os.File, lines int) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	begin := max(info.Size()-tailReach, 0)
	buf := make([]byte, info.Size()-begin)
	n, err := file.ReadAt(buf, begin)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	buf = buf[:n]
	end := len(buf)
	for range lines {
		if end == 0 {
			return begin, nil
		}
		end = bytes.LastIndexByte(buf[:end-1], '\n') + 1
	}
	return begin + int64(end), nil
}

// Read reads what is there; io.EOF says that nothing more is there by now.
func (f *Follower) Read(p []byte) (int, error) {
	for {
		newest := f.isNewest() // before the reading: what is set aside is complete
		if n, _ := f.file.ReadAt(p, f.at-f.from); n > 0 {
			f.at += int64(n)
			return n, nil
		}
		if newest {
			return 0, io.EOF
		}
		if err := f.next(); err != nil {
			return 0, err
		}
	}
}

// isNewest reports whether our file is still the one that is written.
func (f *Follower) isNewest() bool {
	now, errNow := os.Stat(f.path)
	ours, errOurs := f.file.Stat()
	return errNow != nil || errOurs != nil || os.SameFile(now, ours)
}

// next goes on with the part behind ours, or, where that is gone already, with
// the oldest that is kept.
func (f *Follower) next() error {
	parts, err := Parts(f.path)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if p.From <= f.from {
			continue
		}
		file, err := f.open(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if errors.Is(err, errTurned) {
			return nil // the part has its own name now: asked again, it is found there
		}
		if err != nil {
			return err
		}
		_ = f.file.Close()
		f.file, f.from, f.at = file, p.From, max(f.at, p.From)
		return nil
	}
	return io.EOF // it is being turned right now
}

// open opens a part; errTurned where it was set aside before it could be told
// from the one that is written now.
func (f *Follower) open(p Part) (*os.File, error) {
	if p.Path != f.path {
		return os.Open(p.Path)
	}
	file, parts, err := openNewest(p.Path)
	if err == nil && parts[len(parts)-1] != p {
		_ = file.Close()
		return nil, errTurned
	}
	return file, err
}

// Close ends it.
func (f *Follower) Close() error { return f.file.Close() }
