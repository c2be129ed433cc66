package patch

import (
	"errors"
	"fmt"
)

// What a caller acts on. Each comes wrapped in a sentence that names the file
// and the cause.
var (
	ErrRefused  = errors.New("the plan refuses a patch")                         // Apply of a plan with Refused targets; nothing was changed
	ErrChanged  = errors.New("the file changed since the plan was made")         // Apply; nothing was changed; a new plan helps
	ErrDrifted  = errors.New("the file was changed or removed by somebody else") // Revert; the file was left alone, the original is kept
	ErrLeased   = errors.New("another launch has a different patch on the file") // Apply; nothing was changed
	ErrUnknown  = errors.New("no file with a patch and no patch has that name")  // RevertKept, RevertForced; nothing was changed
	ErrNoPython = errors.New("no Python interpreter was found for the command")  // FindInterpreter
)

// noPython is an ErrNoPython that says why, and only that.
func noPython(format string, args ...any) error { return &lacking{fmt.Sprintf(format, args...)} }

type lacking struct{ why string }

func (l *lacking) Error() string        { return l.why }
func (l *lacking) Is(target error) bool { return target == ErrNoPython }
