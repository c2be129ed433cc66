package answers

import (
	"encoding/json"
	"io"
)

// Write writes answers to Prompts down for a person, one a line. They answer
// prompts of our own, so nobody's secrets are in them.
func Write(w io.Writer, all []Answer) error {
	out := json.NewEncoder(w)
	for i, a := range all {
		line := struct {
			Answer int    `json:"answer"`
			Prompt string `json:"prompt"`
			Fault  string `json:"fault,omitempty"`
			Text   string `json:"text"`
			Tokens []int  `json:"tokens,omitempty"`
		}{i + 1, Prompts(len(all))[i], a.Fault(), a.Text, a.Tokens}
		if err := out.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
