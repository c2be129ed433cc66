package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"sglaunch/internal/mask"
	"sglaunch/internal/visible"
)

// object is one JSON object of a client, taken apart one level.
type object map[string]json.RawMessage

// oneObject reads the one object that a client's own, fresh file must hold. A
// file with more was written twice, and nobody can tell by whom.
func oneObject(data []byte) (object, error) {
	data = plain(data)
	dec := json.NewDecoder(bytes.NewReader(data))
	var o object
	switch err := dec.Decode(&o); {
	case err != nil:
		return nil, fmt.Errorf("cannot read the client's result: it is no JSON object: %v", err)
	case o == nil:
		return nil, errors.New("cannot read the client's result: it is no JSON object")
	}
	var more json.RawMessage
	if err := dec.Decode(&more); err == nil {
		return nil, errors.New("cannot read the client's result: the file holds more than one, and only one run wrote to it")
	} else if rest := bytes.TrimSpace(data[dec.InputOffset():]); len(rest) > 0 {
		return nil, errors.New("cannot read the client's result: a second line is torn")
	}
	return o, nil
}

// plain writes null in place of NaN and Infinity, which Python writes and JSON
// does not have. What stands in a string is left alone.
func plain(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for i, inString := 0, false; i < len(data); i++ {
		c := data[i]
		switch {
		case inString && c == '\\' && i+1 < len(data):
			out = append(out, c, data[i+1])
			i++
			continue
		case c == '"':
			inString = !inString
		case !inString:
			if n := noNumber(data[i:]); n > 0 {
				out = append(out, "null"...)
				i += n - 1
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

// noNumber is the length of a word that Python writes for what is no number.
func noNumber(data []byte) int {
	for _, word := range []string{"-Infinity", "Infinity", "NaN"} {
		if bytes.HasPrefix(data, []byte(word)) {
			return len(word)
		}
	}
	return 0
}

// number is the value of a key as a finite number. Texts that hold one count:
// vllm writes its rate as "inf" or a number.
func (o object) number(key string) (x float64, ok bool) {
	raw, there := o[key]
	if !there {
		return 0, false
	}
	if text := o.text(key); text != "" {
		raw = []byte(text)
	}
	x, err := strconv.ParseFloat(string(raw), 64)
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}

// count is a number of things: 0 where it is absent, negative or no number.
func (o object) count(key string) int {
	x, ok := o.number(key)
	if !ok || x < 0 || x > 1e12 {
		return 0
	}
	return int(x)
}

func (o object) text(key string) (s string) {
	if json.Unmarshal(o[key], &s) != nil {
		return ""
	}
	return s
}

// metrics are the figures that a study may name. A negative one is a client's
// word for "not available".
func (o object) metrics() map[string]float64 {
	all := map[string]float64{}
	for key := range o {
		metric, known := canonical(key)
		if x, ok := o.number(key); known && ok && x >= 0 {
			all[metric] = x
		}
	}
	return all
}

// maxText bounds an error that is kept.
const maxText = 300

// firstError is the first text of a list of errors, of which most are empty.
func (o object) firstError() string {
	var all []string
	if json.Unmarshal(o["errors"], &all) != nil {
		return ""
	}
	i := slices.IndexFunc(all, func(s string) bool { return strings.TrimSpace(s) != "" })
	if i < 0 {
		return ""
	}
	return visible.Clip(mask.String(strings.Join(strings.Fields(all[i]), " ")), maxText)
}

// maxServer bounds how many of the server's arguments are kept.
const maxServer = 1000

// server are the server's own arguments as the client read them: the scalars of
// server_info, by name. Secrets are masked.
func (o object) server() map[string]string {
	var info map[string]any
	if json.Unmarshal(o["server_info"], &info) != nil || len(info) == 0 || len(info) > maxServer {
		return nil
	}
	args := map[string]string{}
	for name, value := range info {
		switch v := value.(type) {
		case string:
			args[name] = visible.Clip(mask.Value(name, v), maxText)
		case float64:
			args[name] = strconv.FormatFloat(v, 'f', -1, 64)
		case bool:
			args[name] = strconv.FormatBool(v)
		}
	}
	return args
}
