package config

// Patch stands in for patch.Patch until that package builds.
type Patch struct {
	Use  string `toml:"use"`
	Name string `toml:"name"`
}
