package supervisor

import (
	"encoding/json"

	"sglaunch/internal/mask"
	"sglaunch/phases"
	"sglaunch/supervisor/machine"
)

// diagnose puts what a tracker knows into the machine's terms.
func diagnose(t *phases.Tracker) machine.Diagnosis {
	if t == nil {
		return machine.Diagnosis{}
	}
	r := t.Report()
	d := machine.Diagnosis{
		SGLang: t.IsSGLang(), Failed: r.Failed, Drain: r.Drained,
		Confidence: r.Confidence, Phase: r.Phase.String(),
	}
	if r.Cause != nil {
		d.Cause = *r.Cause
	}
	if r.Root != nil {
		d.Rank, d.Line, d.Text = r.Root.Rank, r.Root.Line, mask.String(r.Root.Text)
	}
	d.Frames = t.Frames()
	return d
}

func explainJSON(r phases.Report) json.RawMessage {
	data, err := json.Marshal(r.MapText(mask.String))
	if err != nil {
		return nil
	}
	return data
}
