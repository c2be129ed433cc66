package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"sglaunch/internal/mask"
	"sglaunch/internal/proc"
	"sglaunch/internal/serve"
	"sglaunch/internal/shim/wire"
	"sglaunch/internal/statedir"
)

// LaunchRecord is launch.json: who runs a launch, and what. A launch without
// Ended whose shim is dead is one that `sglaunch recover` heals.
type LaunchRecord struct {
	V       int       `json:"v"`
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Time    time.Time `json:"time"`
	Command []string  `json:"command"` // secrets masked
	Dir     string    `json:"dir"`
	Boot    string    `json:"boot"` // of the machine; after a reboot no process of it lives
	Shim    wire.Proc `json:"shim"`
	Ended   time.Time `json:"ended,omitzero"`
	Code    int       `json:"code"`
	Reason  string    `json:"reason,omitempty"` // of the end
}

func newLaunchRecord(l statedir.Launch, hello *wire.Hello, s Setup, now time.Time) LaunchRecord {
	return LaunchRecord{
		V: 1, ID: l.ID, Name: s.Name, Time: now,
		Command: mask.Argv(s.Argv), Dir: s.Dir, Boot: proc.BootID(),
		Shim: wire.Proc{PID: hello.PID, Start: hello.Start},
	}
}

// ReadLaunchRecord reads a launch.json.
func ReadLaunchRecord(path string) (LaunchRecord, error) {
	var r LaunchRecord
	data, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("cannot read the record of a launch: %w", err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("cannot read the record of a launch in %q: %w", path, err)
	}
	return r, nil
}

func (r LaunchRecord) write(path string) error { return writeJSON(path, r) }

// readRecord reads the record of a launch, or what leaveEnd left of it elsewhere.
func readRecord(dir statedir.Dir, l statedir.Launch) (LaunchRecord, error) {
	r, err := ReadLaunchRecord(l.Record())
	if err == nil && !r.Ended.IsZero() {
		return r, nil
	}
	if elsewhere, no := ReadLaunchRecord(endPath(dir, l.ID)); no == nil {
		return elsewhere, nil
	}
	return r, err
}

// endPath is where the end of a launch is left whose folder does not take it.
func endPath(dir statedir.Dir, id string) string { return filepath.Join(dir.Runtime, id+".end") }

// leaveEnd writes down how the launch ended: in its folder, or, where that disk fails,
// beside the locks, which lie in memory as a rule.
func (r LaunchRecord) leaveEnd(dir statedir.Dir, l statedir.Launch) error {
	err := r.writeEnd(l.Record())
	if err == nil || errors.Is(err, fs.ErrNotExist) || r.write(endPath(dir, l.ID)) != nil {
		return err
	}
	return nil
}

// writeEnd writes it for the last time. A full disk takes no new file; what fits the
// room of the old one is then written there.
func (r LaunchRecord) writeEnd(path string) error {
	err := r.write(path)
	if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) || overwrite(path, r) != nil {
		return err
	}
	return nil
}

// overwrite writes JSON over that of a file, in the blocks that it has already.
func overwrite(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var is unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &is); err != nil {
		return err
	}
	if int64(len(data)) < is.Size || int64(len(data)) > is.Blocks*512 {
		return unix.ENOSPC
	}
	_, err = f.WriteAt(data, 0)
	return errors.Join(err, f.Sync())
}

// attemptRecord is result.json of an attempt: how it went, in the words of the
// vocabulary.
type attemptRecord struct {
	V       int       `json:"v"`
	Time    time.Time `json:"time"`
	Launch  string    `json:"launch"`
	Attempt int       `json:"attempt"`
	Outcome string    `json:"outcome,omitempty"`
	Cause   string    `json:"cause,omitempty"`
	Phase   string    `json:"phase,omitempty"`
	Ready   bool      `json:"ready"`
	Text    string    `json:"text,omitempty"`
	// OutputCheck is what the look at the answers has found, where there was one.
	OutputCheck *serve.OutputCheck `json:"output_check,omitempty"`
	Explain     json.RawMessage    `json:"explain,omitempty"` // what the output says, as sglaunch explain tells it
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		err = statedir.Replace(path, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", filepath.Base(path), err)
	}
	return nil
}

// envelope is the form of every JSON document that scripts may read.
type envelope = serve.Envelope

// logEvent writes one event as a log line: info is what a person was told too,
// debug what stands in the records alone.
func logEvent(log zerolog.Logger, e envelope) {
	line := log.Debug()
	if e.Text != "" {
		line = log.Info()
	}
	line.Int("v", e.V).Str("time", e.Time.Format(time.RFC3339Nano)).Str("launch", e.Launch).
		Int("attempt", e.Attempt).Str("event", e.Event)
	if e.Text != "" {
		line.Str("text", e.Text)
	}
	if len(e.Fields) > 0 {
		line.Interface("fields", e.Fields)
	}
	line.Send()
}

// eachEvent reads an attempt's events.jsonl; a line that is torn is passed over.
func eachEvent(path string, f func(envelope)) {
	data, err := os.ReadFile(path)
	if err != nil {
		return
	}
	for line := range bytes.Lines(data) {
		var e envelope
		if json.Unmarshal(line, &e) == nil {
			f(e)
		}
	}
}
