package journal

import (
	"encoding/json"
	"fmt"
	"strings"

	"sglaunch/internal/visible"
	"sglaunch/supervisor/machine"
)

// Describe shows a step as a few lines for a person.
func Describe(e Entry, after machine.State) string {
	var b strings.Builder
	kind, body, err := e.Event.Named()
	if err != nil {
		return err.Error() + "\n"
	}
	fmt.Fprintf(&b, "%s  %-14s %s -> %s\n", e.Event.At.Format("15:04:05.000"), kind, clip(body), visible.Line(fmt.Sprint(after)))
	for _, effect := range e.Effects {
		name, content, err := effect.Named()
		if err != nil {
			continue
		}
		if r, ok := effect.Body.(machine.Report); ok {
			if r.Text != "" {
				fmt.Fprintf(&b, "              says: %s\n", visible.Line(r.Text))
			}
			continue
		}
		fmt.Fprintf(&b, "              does: %s %s\n", name, clip(content))
	}
	return b.String()
}

func (d Difference) String() string {
	at := d.Event.At.Format("15:04:05.000")
	if d.Condition != "" {
		return fmt.Sprintf("event %d at %s: %s", d.Event.Seq, at, d.Condition)
	}
	was, _ := json.Marshal(d.Was)
	now, _ := json.Marshal(d.Now)
	return fmt.Sprintf("event %d at %s was decided otherwise: then %s, now %s", d.Event.Seq, at, clip(was), clip(now))
}

func clip(text []byte) string {
	const most = 200
	if len(text) <= most {
		return visible.Line(string(text))
	}
	return visible.Line(string(text[:most])) + "..."
}
