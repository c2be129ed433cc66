package preflight

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// headMost is how much of a file the kernel looks at to know what runs it.
const headMost = 256

// unrunnable tells why the kernel would not run an executable file, and what
// helps; "" where it would, or where nobody can tell from here.
func unrunnable(path string) (why, advice string) {
	f, err := os.Open(path)
	if err != nil { // what may not be read may yet be executed
		return "", ""
	}
	defer f.Close()
	head := make([]byte, headMost)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", ""
	}
	head = head[:n]
	const again = "install or copy it again"
	switch {
	case n == 0:
		return "is empty", again
	case bytes.HasPrefix(head, []byte("#!")):
		return script(head[2:])
	case bytes.HasPrefix(head, []byte(elf.ELFMAG)):
		machine, whole := elfMachine(f, head)
		switch {
		case !whole:
			return "is a damaged program", again
		case !runsHere(machine) && !registeredFormats():
			return fmt.Sprintf("is a program for another machine (%s)", machine), "install the one for " + runtime.GOARCH
		}
		return "", ""
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf#!")):
		return "has a byte order mark before its #! line", "save it as UTF-8 without the mark"
	case bytes.IndexByte(head, 0) < 0:
		return "has no #! line", fmt.Sprintf("only a shell runs such a file by itself: begin it with a line like #!/bin/sh, or give the command as sh %s", path)
	case !registeredFormats():
		return "is neither a program nor a script", again
	}
	return "", ""
}

// script follows what stands behind #!, as the kernel does: it knows blanks, and
// takes a carriage return for a part of the name.
func script(line []byte) (why, advice string) {
	line, _, _ = bytes.Cut(line, []byte{'\n'})
	words := bytes.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(words) == 0 {
		return "names no interpreter in its #! line", "name one, such as #!/bin/sh"
	}
	name, last := string(words[0]), words[len(words)-1]
	crlf := bytes.HasSuffix(last, []byte{'\r'})
	switch {
	case crlf && (len(words) == 1 || filepath.Base(name) == "env"):
		return fmt.Sprintf("has a #! line that ends in CR LF, so that its interpreter is %q, which does not exist", last),
			"turn its line ends into those of Unix: sed -i 's/\\r$//'"
	case filepath.IsAbs(name) && errors.Is(executable(name), fs.ErrNotExist):
		return fmt.Sprintf("wants the interpreter %q, which does not exist", name),
			"a moved or deleted virtual environment does this; install the program again"
	}
	return "", ""
}

// elfMachine reads for what machine a program is, and whether its headers are
// whole: without them the kernel knows no program in it.
func elfMachine(f *os.File, head []byte) (m elf.Machine, whole bool) {
	var order binary.ByteOrder = binary.LittleEndian
	if len(head) > elf.EI_DATA && elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	var h elf.Header64
	end := uint64(0)
	switch {
	case len(head) > elf.EI_CLASS && elf.Class(head[elf.EI_CLASS]) == elf.ELFCLASS64:
		if binary.Read(bytes.NewReader(head), order, &h) != nil {
			return 0, false
		}
		end = h.Phoff + uint64(h.Phnum)*uint64(h.Phentsize)
	case len(head) > elf.EI_CLASS && elf.Class(head[elf.EI_CLASS]) == elf.ELFCLASS32:
		var short elf.Header32
		if binary.Read(bytes.NewReader(head), order, &short) != nil {
			return 0, false
		}
		h.Type, h.Machine, h.Phnum = short.Type, short.Machine, short.Phnum
		end = uint64(short.Phoff) + uint64(short.Phnum)*uint64(short.Phentsize)
	}
	info, err := f.Stat()
	kind := elf.Type(h.Type)
	return elf.Machine(h.Machine), err == nil && (kind == elf.ET_EXEC || kind == elf.ET_DYN) && h.Phnum > 0 && end <= uint64(info.Size())
}

// machines are those whose programs a kernel may run, the older one of 32 bits
// among them.
var machines = map[string][2]elf.Machine{
	"amd64": {elf.EM_X86_64, elf.EM_386},
	"arm64": {elf.EM_AARCH64, elf.EM_ARM},
}

func runsHere(m elf.Machine) bool {
	ours, known := machines[runtime.GOARCH]
	return !known || m == ours[0] || m == ours[1]
}

// registeredFormats tells whether the kernel knows of interpreters for other
// formats, such as an emulator for another machine's programs.
func registeredFormats() bool {
	formats, err := os.ReadDir("/proc/sys/fs/binfmt_misc")
	return err == nil && len(formats) > 2 // beside register and status
}
