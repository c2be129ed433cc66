package phases

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
)

const readChunk = 256 << 10

// Read reads a whole stream and tells what it means. Memory does not grow with
// its length. Where the stream is a gzip file that is cut or damaged, the answer
// is about what could be read, says so, and takes no last line for the end.
func Read(r io.Reader, rules *RuleSet) (Report, error) {
	return read(r, rules, readChunk)
}

func read(r io.Reader, rules *RuleSet, chunk int) (Report, error) {
	t := NewTracker(rules)
	t.brief = true
	err := t.readStretches(r, chunk)
	if errors.Is(err, io.EOF) {
		t.Finish()
		return t.Report(), nil
	}
	if why := damage(err); why != "" {
		report := t.Report()
		report.Cut = why
		return report, nil
	}
	return Report{}, fmt.Errorf("cannot read the output: %w", err)
}

// damage says what is wrong with a gzip file whose begin could be read; "" for
// any other error.
func damage(err error) string {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the gzip file is cut short"
	case errors.As(err, &corrupt), errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader):
		return "the gzip file is damaged"
	}
	return ""
}

// Open opens a saved output for reading: a file, plain or gzip by content, or
// "-" for standard input. The caller closes it.
func Open(path string) (io.ReadCloser, error) {
	file := os.Stdin
	if path != "-" {
		var err error
		if file, err = os.Open(path); err != nil {
			return nil, fmt.Errorf("cannot open the output: %w", err)
		}
		if info, err := file.Stat(); err == nil && info.IsDir() {
			file.Close()
			return nil, fmt.Errorf("cannot read %q as output: it is a directory", path)
		}
	}
	buffered := bufio.NewReaderSize(file, 4<<10)
	magic, _ := buffered.Peek(2)
	if len(magic) < 2 || magic[0] != 0x1f || magic[1] != 0x8b {
		return &opened{Reader: buffered, file: file}, nil
	}
	unzipped, err := gzip.NewReader(buffered)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot read %q as gzip: %w", path, err)
	}
	return &opened{Reader: unzipped, file: file}, nil
}

// opened reads through what its file needs and closes the file.
type opened struct {
	io.Reader
	file *os.File
}

func (o *opened) Close() error {
	if o.file == os.Stdin {
		return nil
	}
	return o.file.Close()
}
