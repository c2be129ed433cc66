package patch

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
)

//go:embed shipped/*.toml
var shippedFiles embed.FS

// shipped decodes the embedded patches once. They are part of the program, so
// one that does not decode is a fault of the build and panics; a test reads all.
var shipped = sync.OnceValue(func() map[string]Patch {
	entries, err := shippedFiles.ReadDir("shipped")
	if err != nil {
		panic(err)
	}
	all := make(map[string]Patch, len(entries))
	for _, entry := range entries {
		var p Patch
		meta, err := toml.DecodeFS(shippedFiles, path.Join("shipped", entry.Name()), &p)
		if err != nil {
			panic(fmt.Sprintf("shipped patch %s: %v", entry.Name(), err))
		}
		if extra := meta.Undecoded(); len(extra) > 0 {
			panic(fmt.Sprintf("shipped patch %s: unknown key %s", entry.Name(), extra[0]))
		}
		p.Name = strings.TrimSuffix(entry.Name(), ".toml")
		all[p.Name] = p
	}
	return all
})

// Shipped returns the patch that comes with sglaunch under this name.
func Shipped(name string) (Patch, bool) {
	p, ok := shipped()[name]
	return p, ok
}

// ShippedNames lists what Shipped knows, sorted.
func ShippedNames() []string {
	names := make([]string, 0, len(shipped()))
	for name := range shipped() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
