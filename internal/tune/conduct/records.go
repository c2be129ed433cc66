package conduct

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sglaunch/internal/mask"
	"sglaunch/internal/serve"
	"sglaunch/internal/statedir"
	"sglaunch/internal/visible"
	"sglaunch/supervisor"
)

// account is what a launch has written down about itself: how its newest
// attempt went, in the words of the vocabulary. What is unknown is empty.
type account struct {
	dir, attempt string // folders
	code         int    // exit code of the launch
	ended        bool   // it has written how it ended

	outcome, cause, phase, text string

	checked    string            // of the output: ok, failed; "" = not checked
	effects    map[string]string // of patches, by name
	applied    map[string]bool
	held       string // what holds GPU memory or ports still
	unkillable string // processes that would not go
	hardware   string // Xid events
}

// readAccount reads the records of a launch that was begun at a time. One that
// has not told its ID is looked for by its name; all trials have the same one,
// so what is older is another's. It is false where there are no records: then
// the launch did not begin.
func readAccount(state statedir.Dir, name, id string, began time.Time) (account, bool) {
	l, err := state.OpenLaunch(id)
	if id == "" {
		all, lerr := state.Launches(name)
		if lerr != nil || len(all) == 0 || all[len(all)-1].Began().Before(began.Truncate(time.Millisecond)) {
			return account{}, false
		}
		l, err = all[len(all)-1], nil
	}
	if err != nil {
		return account{}, false
	}
	a := account{dir: l.Path, effects: map[string]string{}, applied: map[string]bool{}}
	if r, err := supervisor.ReadLaunchRecord(l.Record()); err == nil {
		a.code, a.ended = r.Code, !r.Ended.IsZero()
	}
	attempts, err := l.Attempts()
	if err != nil || len(attempts) == 0 {
		return a, true
	}
	newest := attempts[len(attempts)-1]
	a.attempt = newest.Path
	a.readEvents(newest.Events())
	return a, true
}

// eventMost bounds one line of an attempt's events.
const eventMost = 8 << 20

func (a *account) readEvents(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, eventMost)
	for lines.Scan() {
		var e serve.Envelope
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			a.take(e)
		}
	}
}

// checks are the results of an output check, as the launch tells them; of one
// that was not done nothing is known.
var checks = map[string]string{"passed": "ok", "partial": "partial", "corrupt": "failed"}

func (a *account) take(e serve.Envelope) {
	switch e.Event {
	case "patch":
		if effect := e.Word("effect"); effect != "" {
			a.effects[e.Word("patch")] = effect
		}
		if e.Word("state") == "applied" {
			a.applied[e.Word("patch")] = true
		}
	case "checked":
		a.checked = checks[e.Word("output_check")]
	case "fault":
		a.takeFault(e)
	case "attempt_ended":
		a.outcome, a.cause, a.phase, a.text = e.Word("outcome"), e.Word("cause"), e.Word("phase"), e.Word("text")
	case "gave_up":
		if a.text == "" {
			a.text = e.Text
		}
	}
}

// takeFault picks the faults that say more than how this server failed.
func (a *account) takeFault(e serve.Envelope) {
	_, processes := e.Fields["processes"]
	holder, held := e.Fields["holder"].(string)
	foreign, _ := e.Fields["foreign"].(bool)
	xid, _ := e.Fields["xid"].(float64)
	switch {
	case processes:
		a.unkillable = e.Text
	case held && !foreign:
		a.held = holder
	case xid != 0:
		a.hardware = e.Text
	}
}

// log is the path of the server's raw output.
func (a account) log() string { return filepath.Join(a.attempt, "server.log") }

// excerptLines is how many last lines of a failed server a record keeps.
const excerptLines = 20

// excerpt is the end of the server's output, masked.
func (a account) excerpt() []string {
	text, _ := tailOf(a.log(), 16<<10)
	var lines []string
	for line := range strings.Lines(string(text)) {
		if i := strings.LastIndexByte(strings.TrimRight(line, "\r\n"), '\r'); i >= 0 {
			line = line[i+1:] // a bar: its newest state
		}
		if line = serve.Plain(strings.TrimSpace(line)); line != "" {
			lines = append(lines, visible.Clip(mask.String(line), 400))
		}
	}
	return lines[max(0, len(lines)-excerptLines):]
}
