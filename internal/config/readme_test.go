package config

import (
	"os"
	"strings"
	"testing"
)

// The launch.toml that README shows is one.
func TestReadmeShowsARealFile(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(readme), "```toml\n")
	block, _, found := strings.Cut(block, "```\n")
	if !found {
		t.Fatal("README holds no TOML block")
	}
	c, err := Load(Options{Path: write(t, block)})
	if err != nil {
		t.Fatal(err)
	}
	if c.Server.Name != "glm" || len(c.Patches) != 1 || c.Relaunch.Attempts != 8 {
		t.Errorf("it was read as %+v", c)
	}
}
