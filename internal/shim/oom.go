package shim

import (
	"os"
	"strconv"
	"strings"
)

// oomScores says whom the kernel should end first when memory runs out: the
// server as it would be without us, the shim last, the supervisor in between.
// All are "" where the score cannot be lowered.
type oomScores struct{ original, middle, own string }

const (
	oomFile   = "/proc/self/oom_score_adj"
	oomLowest = -900 // the kernel's own limit, -1000, would exempt us altogether
)

// lowerOOM lowers the score as far as permitted: without CAP_SYS_RESOURCE the
// kernel refuses, and everything stays as it is.
func lowerOOM() oomScores {
	text, err := os.ReadFile(oomFile)
	original := strings.TrimSpace(string(text))
	was, errNumber := strconv.Atoi(original)
	if err != nil || errNumber != nil || was <= oomLowest {
		return oomScores{}
	}
	own := strconv.Itoa(oomLowest)
	if os.WriteFile(oomFile, []byte(own), 0) != nil {
		return oomScores{}
	}
	return oomScores{original: original, middle: strconv.Itoa((was + oomLowest) / 2), own: own}
}

// become sets the score of this process, which its children inherit.
func (oomScores) become(score string) {
	if score != "" {
		_ = os.WriteFile(oomFile, []byte(score), 0)
	}
}
