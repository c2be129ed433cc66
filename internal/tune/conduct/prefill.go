package conduct

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"

	"sglaunch/internal/rawlog"
	"sglaunch/internal/tune"
)

// prefill is what SGLang prints of a batch that it prefills, from 0.4 to 0.5.23.
// Tokens that a prompt shares with the prefix cache are not computed again.
var prefill = regexp.MustCompile(`Prefill batch.*#new-token: (\d+), #cached-token: (\d+)`)

// promptLeast is how many tokens a prompt of a bench client has at least: what a
// health probe asks for has one.
const promptLeast = 16

// openingOf finds the first batch of prompts in an output; nil: it tells of none.
func openingOf(output []byte) *tune.Opening {
	for _, m := range prefill.FindAllSubmatch(output, -1) {
		computed, errN := strconv.Atoi(string(m[1]))
		cached, errC := strconv.Atoi(string(m[2]))
		if errN == nil && errC == nil && computed+cached >= promptLeast {
			return &tune.Opening{Computed: computed, Cached: cached}
		}
	}
	return nil
}

// openingMost is how much of an output is looked through: between the flush and
// the first prompt a server has little to say.
const openingMost = 1 << 20

// logEnd is how many bytes the server has printed so far; false where that is
// not to be found out.
func (at *attempt) logEnd() (int64, bool) {
	parts, err := rawlog.Parts(at.log())
	if err != nil {
		return 0, false
	}
	newest := parts[len(parts)-1]
	info, err := os.Stat(newest.Path)
	if err != nil {
		return 0, false
	}
	return newest.From + info.Size(), true
}

// opening is how the server got the first prompts since a place in its output;
// nil where it does not say.
func (at *attempt) opening(from int64) *tune.Opening {
	parts, err := rawlog.Parts(at.log())
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(parts, func(p rawlog.Part) bool { return p.From > from })
	if i < 0 {
		i = len(parts)
	}
	if i == 0 {
		return nil // beyond what is kept
	}
	part := parts[i-1]
	f, err := os.Open(part.Path)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, from-part.From, openingMost))
	if err != nil {
		return nil
	}
	return openingOf(text)
}

// log is the raw output of the launch's newest attempt.
func (at *attempt) log() string {
	a, ok := readAccount(at.state, at.server.Name, at.server.ID(), at.began)
	if !ok {
		return ""
	}
	return a.log()
}
