package config

import (
	"fmt"
	"slices"
	"strings"
)

// Error is one thing wrong with the configuration.
type Error struct {
	File    string // as given; empty: the command line, or a Config built in code
	Line    int    // from 1; 0 where no line is to blame
	Key     string // "relaunch.attempts", "patch[0].edit[1].find"; empty: the whole file
	Value   string // as TOML, shortened, secrets masked; empty where none helps
	Problem string // what it should have been
	Hint    string // what to do; empty where Problem says it
}

// NewError says what is wrong with the value of a key; a nil value shows none.
// ReadFile adds the place.
func NewError(key string, value any, problem string, args ...any) *Error {
	return &Error{Key: key, Value: shownValue(key, value), Problem: fmt.Sprintf(problem, args...)}
}

// Key writes the path of a key within a table as errors name it, quoting what
// TOML would quote.
func Key(table, name string) string { return join(table, name) }

// Error tells place, key, value and problem in one line, without the hint.
func (e *Error) Error() string {
	switch {
	case e.Key == "" && e.Line == 0:
		return fmt.Sprintf("cannot read %q: %s", e.File, e.Problem)
	case e.Key == "":
		return fmt.Sprintf("%s:%d: cannot read this line: %s", e.File, e.Line, e.Problem)
	case e.Value == "":
		return fmt.Sprintf("%scannot use %s: %s", e.place(), e.Key, e.Problem)
	}
	return fmt.Sprintf("%scannot use %s = %s: %s", e.place(), e.Key, e.Value, e.Problem)
}

func (e *Error) place() string {
	switch {
	case e.File == "":
		return ""
	case e.Line == 0:
		return e.File + ": "
	}
	return fmt.Sprintf("%s:%d: ", e.File, e.Line)
}

// Errors is everything wrong with a configuration, in the order of the file.
type Errors []*Error

// Error tells one problem a line, without hints.
func (all Errors) Error() string {
	lines := make([]string, len(all))
	for i, e := range all {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Report is what a person reads: each problem on a line, its hint under it.
func (all Errors) Report() string {
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintln(&b, e.Error())
		if e.Hint != "" {
			fmt.Fprintf(&b, "  hint: %s\n", e.Hint)
		}
	}
	return b.String()
}

// Unwrap gives errors.As each *Error.
func (all Errors) Unwrap() []error {
	list := make([]error, len(all))
	for i, e := range all {
		list[i] = e
	}
	return list
}

// orNil sorts by place, and turns an empty list into no error.
func (all Errors) orNil() error {
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b *Error) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	return all
}
