package patch

// Interpreter is the Python that will run the server, with what decides where
// it looks for modules. FindInterpreter fills it in; a caller that knows the
// python needs no more than Python.
type Interpreter struct {
	Python string   `json:"python"`          // absolute path, links not followed: a venv is known by its link
	Dir    string   `json:"dir"`             // working directory
	Env    []string `json:"-"`               // NAME=value; nil = this process's own
	Flags  []string `json:"flags,omitempty"` // of the interpreter: "-I", "-X", "pycache_prefix=..."
	Path0  string   `json:"path0,omitempty"` // first entry of sys.path: "" = Dir, as with -m; "-" = none
}
