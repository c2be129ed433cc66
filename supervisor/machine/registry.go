package machine

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// registry gives the members of a sealed set their names in the journal. The
// values are pointers to zero values and serve as types only.
type registry[T any] map[string]any

// encode returns the name and the JSON of v.
func (r registry[T]) encode(v T) (string, json.RawMessage, error) {
	want := reflect.TypeOf(v)
	for name, sample := range r {
		if reflect.TypeOf(sample).Elem() == want {
			data, err := json.Marshal(v)
			return name, data, err
		}
	}
	return "", nil, fmt.Errorf("internal error: %T has no name in the journal", v)
}

// decode returns the value of the given name.
func (r registry[T]) decode(name string, data json.RawMessage) (T, error) {
	var zero T
	sample, ok := r[name]
	if !ok {
		return zero, fmt.Errorf("unknown kind %q: written by another version of sglaunch", name)
	}
	v := reflect.New(reflect.TypeOf(sample).Elem())
	if len(data) > 0 {
		if err := json.Unmarshal(data, v.Interface()); err != nil {
			return zero, err
		}
	}
	return v.Elem().Interface().(T), nil
}
