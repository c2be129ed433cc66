package answers

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed prompts.txt
var promptsText string

var prompts = strings.Split(strings.TrimSuffix(promptsText, "\n"), "\n---\n")

// Prompts returns n prompts, all different: prose, questions, letters, several
// languages. Each asks for a long continuation, and none for tables, lists of
// numbers or anything else in which a token repeats itself by right.
func Prompts(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = prompts[i%len(prompts)]
		if round := i / len(prompts); round > 0 {
			all[i] = fmt.Sprintf("Text %d.\n\n%s", round+1, all[i])
		}
	}
	return all
}
