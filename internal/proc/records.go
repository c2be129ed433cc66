package proc

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Record is one line of a records file: a process that was seen as a member of
// an attempt. The file outlives the shim that wrote it; whoever finds it later
// ends what is left. A record of another boot names nobody.
type Record struct {
	PID     int    `json:"pid"`
	Start   uint64 `json:"start"`
	PPID    int    `json:"ppid,omitempty"`
	Group   int    `json:"group,omitempty"`
	Session int    `json:"session,omitempty"`
	Comm    string `json:"comm,omitempty"`
	Cmd     string `json:"cmd,omitempty"` // masked and bounded
	Boot    string `json:"boot,omitempty"`
}

// RecordOf describes a process of this boot.
func RecordOf(p Proc) Record {
	return Record{
		PID: p.PID, Start: p.Start, PPID: p.PPID, Group: p.Group, Session: p.Session,
		Comm: p.Comm, Cmd: Command(p), Boot: BootID(),
	}
}

// ID names the recorded process.
func (r Record) ID() ID { return ID{PID: r.PID, Start: r.Start} }

// MembershipOf says who belongs to an attempt by its records. Fresh: its shim has
// died just now, so that the numbers of its sessions cannot have been reused yet
// and whoever is in them belongs, recorded or not.
func MembershipOf(records []Record, marker string, fresh bool) Membership {
	m := Membership{Marker: marker}
	for _, r := range records {
		m.Recorded = append(m.Recorded, r.ID())
		if fresh && r.Session > 1 {
			m.Sessions = append(m.Sessions, r.Session)
		}
	}
	return m
}

// recordLimit bounds one line; a longer one is no record.
const recordLimit = 64 << 10

// ReadRecords reads a records file. Records of another boot, and lines that are
// no record (the last one may be half written), are left out. A file that does
// not exist holds none.
func ReadRecords(path string) ([]Record, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read process records: %w", err)
	}
	defer f.Close()
	records, err := parseRecords(f, BootID())
	if err != nil {
		return records, fmt.Errorf("cannot read process records %q: %w", path, err)
	}
	return records, nil
}

func parseRecords(r io.Reader, boot string) ([]Record, error) {
	var records []Record
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4<<10), recordLimit)
	for lines.Scan() {
		var rec Record
		if json.Unmarshal(lines.Bytes(), &rec) == nil && rec.PID > 1 && rec.Start > 0 && rec.Boot == boot {
			records = append(records, rec)
		}
	}
	return records, lines.Err()
}
