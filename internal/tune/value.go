package tune

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Value is what an axis is set to: text, or a flag that stands alone (true) or
// is left out (false). The zero Value is the empty text.
type Value struct {
	Text string
	Kind ValueKind
}

// ValueKind tells what a Value is.
type ValueKind uint8

// The kinds of a value.
const (
	Text   ValueKind = iota // the flag with this text; the variable with it
	Alone                   // the flag, without a value
	Absent                  // no flag, no variable, whatever the base says
)

// TextValue is a value as a command line writes it.
func TextValue(text string) Value { return Value{Text: text} }

// Number is the value as a number; ok is false where it is none.
func (v Value) Number() (n float64, ok bool) {
	n, err := strconv.ParseFloat(v.Text, 64)
	return n, err == nil && v.Kind == Text && !math.IsNaN(n) && !math.IsInf(n, 0)
}

// String writes the value for a person.
func (v Value) String() string {
	switch v.Kind {
	case Alone:
		return "on"
	case Absent:
		return "off"
	}
	if v.Text == "" {
		return "none"
	}
	return v.Text
}

// UnmarshalTOML takes text, a number, true or false.
func (v *Value) UnmarshalTOML(value any) error { return v.set(value) }

// MarshalJSON writes true, false or the text.
func (v Value) MarshalJSON() ([]byte, error) {
	switch v.Kind {
	case Alone:
		return []byte("true"), nil
	case Absent:
		return []byte("false"), nil
	}
	return json.Marshal(v.Text)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (v *Value) UnmarshalJSON(data []byte) error {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return err
	}
	return v.set(value)
}

func (v *Value) set(value any) error {
	*v = Value{}
	switch x := value.(type) {
	case string:
		if strings.ContainsRune(x, 0) {
			return fmt.Errorf("cannot use %q as a value: a NUL byte cannot be passed on to a process", x)
		}
		v.Text = x
	case bool:
		if v.Kind = Absent; x {
			v.Kind = Alone
		}
	case int64:
		v.Text = strconv.FormatInt(x, 10)
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("cannot use %v as a value: it takes a finite number", x)
		}
		v.Text = strconv.FormatFloat(x, 'f', -1, 64)
	default:
		return fmt.Errorf("cannot use %v as a value: it takes text, a number, true (the flag stands alone) or false (it is left out)", x)
	}
	return nil
}
