package config

import (
	"strings"
	"testing"
)

// What may be shown to anybody holds no secret of whatever is called or started.
func TestEffectiveHidesSecrets(t *testing.T) {
	const secret = "s3cret"
	argv := []string{"tell", "--token", secret}
	c := Default()
	c.Server.Command = []string{"python", "-m", "sglang.launch_server", "--api-key", secret}
	c.Server.Env = map[string]string{"HF_TOKEN": secret}
	c.Hooks = Hooks{
		OnReady: argv, OnStopping: argv, OnFailure: argv, OnRecovered: argv, OnGaveUp: argv, OnStuck: argv,
		Webhook: "https://user:" + secret + "@example.org/",
	}
	if text := c.Effective(); strings.Contains(text, secret) {
		t.Errorf("the effective configuration tells a secret:\n%s", text)
	}
	if argv[2] != secret {
		t.Error("what is in force was masked as well")
	}
}
