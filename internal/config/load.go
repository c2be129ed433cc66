package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"sglaunch/internal/mask"
	"sglaunch/internal/trust"
	"sglaunch/internal/visible"
)

// Bounds that no launch.toml of a person comes near.
const (
	maxFile   = 256 << 10 // the parser takes the square of the keys of one table
	maxErrors = 100       // told; a file with more is no launch.toml
)

// Options says what Load reads.
type Options struct {
	Path    string // of launch.toml; empty: no file, defaults only
	Content []byte // of the file, where it was read before; nil: it is read now
	// Files of a configuration that is in force already. No other file that it names is
	// looked at then: what has become of them is no reason to refuse it.
	Files   Files
	Dir     string   // that relative paths count from, but those in the file; "" = the working directory
	Command []string // after "--"; replaces [server] command
	Sets    []Set    // from flags; later ones win

	// CommandOptional is for callers that start nothing, such as a patch plan:
	// they do with server.python alone.
	CommandOptional bool
}

// Set is one key given outside the file, with its value as text.
type Set struct {
	Key   string // "relaunch.attempts"
	Value string // plain for keys that take text, TOML for all others
}

// Load reads the file and the sets over the defaults and checks the result.
// Its error is an Errors that holds everything found wrong.
func Load(o Options) (Config, error) {
	l := loader{config: Default(), held: o.Files, dir: o.Dir, flags: map[string]bool{}, told: map[string]bool{}, elsewhere: keyElsewhere}
	l.config.Files = Files{}
	l.readFile(o.Path, o.Content, &l.config)
	for _, set := range o.Sets {
		l.readSet(set)
	}
	if len(o.Command) > 0 {
		l.config.Server.Command = slices.Clone(o.Command)
		l.flags["server.command"] = true
	}
	if !l.broken {
		l.checkFiles()
		l.checkRules(o.CommandOptional)
	}
	if err := l.errors.orNil(); err != nil {
		return Config{}, err
	}
	return l.config, nil
}

// ReadFile reads a TOML file of another kind than launch.toml into a struct, by
// the same rules: an unknown key, a wrong type or a file that others may write
// is an error, relative paths count from the file, and all that is wrong is
// told at once. check, which may be nil, says what else is wrong, best as
// Errors made with NewError. The error of ReadFile is an Errors.
func ReadFile(path string, into any, check func() error) error {
	return readContent(path, nil, into, check)
}

// readContent is ReadFile of a file that was read before; nil: it is read now.
func readContent(path string, content []byte, into any, check func() error) error {
	l := loader{told: map[string]bool{}, elsewhere: func(string) string { return "" }}
	l.readFile(path, content, into)
	if !l.broken && check != nil {
		l.addAll(check())
	}
	return l.errors.orNil()
}

// addAll records what a check found; a plain error is about the whole file.
func (l *loader) addAll(err error) {
	var found Errors
	switch {
	case err == nil:
	case errors.As(err, &found):
		for _, e := range found {
			l.add(e)
		}
	default:
		l.errors = append(l.errors, &Error{File: l.file, Problem: err.Error()})
	}
}

// loader is one call of Load or ReadFile.
type loader struct {
	config Config
	held   Files  // nil: files are read and looked at
	dir    string // "" = the working directory
	file   string // as given
	where  positions
	flags  map[string]bool // keys that the command line gave
	errors Errors
	told   map[string]bool // keys in errors
	broken bool            // the file is no TOML: nothing else is worth saying

	elsewhere func(name string) string // the same key in another table; "" = there is none
}

// ReadContent returns what launch.toml holds, for Options.Content. Its error is an
// Errors.
func ReadContent(path string) ([]byte, error) {
	content, err := trust.Read(path, maxFile)
	if err != nil {
		return nil, Errors{fileError(path, err)}
	}
	return content, nil
}

// readFile reads a file, or what it held, into the struct that into points to.
func (l *loader) readFile(path string, content []byte, into any) {
	if path == "" {
		return
	}
	l.file = path
	if content == nil {
		var err error
		if content, err = trust.Read(path, maxFile); err != nil {
			l.giveUp(fileError(path, err))
			return
		}
	}
	if line := tooDeep(content); line > 0 {
		l.broken = true
		l.errors = append(l.errors, &Error{File: path, Line: line, Problem: fmt.Sprintf("nested deeper than %d levels", maxDepth)})
		return
	}
	document, err := parseTOML(content)
	if err != nil {
		l.giveUp(syntaxError(path, err))
		return
	}
	base := filepath.Dir(path)
	if !filepath.IsAbs(base) {
		base = filepath.Join(l.workingDirectory(), base)
	}
	l.where = locate(content)
	d := decoder{loader: l, base: base}
	d.table(reflect.ValueOf(into).Elem(), document, "")
}

// giveUp records what makes all other errors meaningless.
func (l *loader) giveUp(e *Error) {
	l.broken = true
	l.errors = append(l.errors, e)
}

func fileError(path string, err error) *Error {
	e := &Error{File: path, Problem: err.Error()}
	if errors.Is(err, trust.ErrUntrusted) {
		e.Hint = "as root, only files of root that others cannot write are read: chown root and chmod o-w it"
	}
	return e
}

func syntaxError(path string, err error) *Error {
	var at toml.ParseError
	if !errors.As(err, &at) {
		return &Error{File: path, Problem: cause(err)}
	}
	return &Error{File: path, Line: at.Position.Line, Problem: cause(err)}
}

// parseTOML reads a document into maps, lists and scalars. An array of tables
// becomes a list like any other.
func parseTOML(content []byte) (map[string]any, error) {
	var document map[string]any
	if err := toml.Unmarshal(content, &document); err != nil {
		return nil, err
	}
	if document == nil {
		return map[string]any{}, nil
	}
	return lists(document).(map[string]any), nil
}

func lists(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			v[name] = lists(inner)
		}
	case []map[string]any:
		rows := make([]any, len(v))
		for i, row := range v {
			rows[i] = lists(row)
		}
		return rows
	case []any:
		for i, inner := range v {
			v[i] = lists(inner)
		}
	}
	return value
}

// preamble is what an Error says itself: that something cannot be used.
var preamble = regexp.MustCompile(`^(?:toml: |cannot (?:[^":]|"(?:[^"\\]|\\.)*")*: )`)

// cause is an error's text without its preamble: the name of a library, or a
// place in a text that nobody sees.
func cause(err error) string {
	var at toml.ParseError
	if errors.As(err, &at) {
		return at.Message
	}
	return preamble.ReplaceAllString(err.Error(), "")
}

// readSet applies one flag.
func (l *loader) readSet(set Set) {
	l.flags[set.Key] = true
	f, ok := find(&l.config, set.Key)
	if !ok {
		l.fail(set.Key, nil, noSuchKey).Hint = unknownFlagHint(set.Key)
		return
	}
	value, err := f.parse(set.Value)
	if err != nil {
		l.fail(set.Key, set.Value, "it takes "+takes(f.Value.Type())+" in TOML: "+cause(err))
		return
	}
	d := decoder{loader: l, base: l.workingDirectory()}
	d.into(f.Value, value, f.Key, f.Tag)
}

func (l *loader) workingDirectory() string {
	if l.dir != "" {
		return l.dir
	}
	dir, err := os.Getwd()
	if err != nil {
		return "/"
	}
	return dir
}

// parse reads the text of a flag: as it is where the key takes text, as TOML
// where it takes anything else.
func (f field) parse(text string) (any, error) {
	if f.takesText() && !(f.Value.Type() == reflect.TypeFor[Devices]() && strings.HasPrefix(text, "[")) {
		return text, nil
	}
	document, err := parseTOML([]byte("value = " + text))
	if err != nil {
		return nil, err
	}
	if len(document) != 1 {
		return nil, errors.New("more than one value")
	}
	return document["value"], nil
}

// fail records one error.
func (l *loader) fail(key string, value any, problem string) *Error {
	e := &Error{Key: key, Problem: problem}
	if !l.enough() {
		e.Value = shownValue(key, value)
	}
	l.add(e)
	return e
}

// unknown records a key that the table does not have.
func (l *loader) unknown(key string, table reflect.Type) {
	if !l.enough() {
		l.fail(key, nil, noSuchKey).Hint = unknownHint(key, table, l.elsewhere)
	}
}

func (l *loader) enough() bool { return len(l.errors) >= maxErrors }

// shownValue is a value as an error may show it; nil shows none.
func shownValue(key string, value any) string {
	if value == nil {
		return ""
	}
	if _, name := split(key); mask.Name(name) {
		return quote(mask.Stars)
	}
	return visible.Clip(mask.String(tomlText(reflect.ValueOf(value))), mostShown)
}

// add records an error and where it stands. Later errors of the same key are
// echoes of the first.
func (l *loader) add(e *Error) {
	if l.told[e.Key] || l.enough() {
		return
	}
	l.told[e.Key] = true
	switch {
	case l.fromFlag(e.Key):
		e.Key = "--" + e.Key
	case l.where.line(e.Key) > 0:
		e.File, e.Line = l.file, l.where.line(e.Key)
	}
	e.Key, e.Problem = visible.Clip(e.Key, mostShown), visible.Line(e.Problem)
	l.errors = append(l.errors, e)
}

// fromFlag reports whether the command line gave the key or a table around it.
func (l *loader) fromFlag(key string) bool {
	for ; key != ""; key = parent(key) {
		if l.flags[key] {
			return true
		}
	}
	return false
}

func sortedKeys(m map[string]any) []string {
	return slices.Sorted(maps.Keys(m))
}
