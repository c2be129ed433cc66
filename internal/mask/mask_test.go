package mask

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestString(t *testing.T) {
	for in, want := range map[string]string{
		// What SGLang prints at every start.
		`server_args=ServerArgs(model_path='/m', tokenizer_path='/m', api_key='s3cret', admin_api_key="it's", ssl_keyfile_password='p\'w', max_total_tokens=5, hf_token=None)`: `server_args=ServerArgs(model_path='/m', tokenizer_path='/m', api_key='****', admin_api_key="****", ssl_keyfile_password='****', max_total_tokens=5, hf_token=None)`,
		`api_key=None, x=1`:                    `api_key=None, x=1`,
		`api_key=''`:                           `api_key=''`,
		`{"api_key": "s3cret", "n": 1}`:        `{"api_key": "****", "n": 1}`,
		`{\"api_key\": \"s3cret\", \"n\": 1}`:  `{\"api_key\": \"****\", \"n\": 1}`,
		`{'admin_api_key': 's3cret'}`:          `{'admin_api_key': '****'}`,
		`api_key='cut off in the middle`:       `api_key='****`,
		"api_key='cut off\nnext line":          "api_key='****\nnext line",
		`api_key=b'bytes', y`:                  `api_key=b'****', y`,
		`api_key = "in toml"`:                  `api_key = "****"`,
		`--api-key s3cret --tp 8`:              `--api-key **** --tp 8`,
		`--api-key=s3cret --tp 8`:              `--api-key=**** --tp 8`,
		`['--api-key', 's3cret', '--tp', '8']`: `['--api-key', '****', '--tp', '8']`,
		`["--admin-api-key","s3cret"]`:         `["--admin-api-key","****"]`,
		`"--api-key", "s3cret"]`:               `"--api-key", "****"]`,
		`HF_TOKEN=abc python -m x`:             `HF_TOKEN=**** python -m x`,
		`export AWS_SECRET_ACCESS_KEY="a b"`:   `export AWS_SECRET_ACCESS_KEY="****"`,
		`'DB_PASSWORD': 'x', 'HOME': '/root'`:  `'DB_PASSWORD': '****', 'HOME': '/root'`,
		`Authorization: Bearer abcdefgh.ijkl=`: `Authorization: Bearer ****`,
		`{'Authorization': 'Bearer abcdefgh'}`: `{'Authorization': 'Bearer ****'}`,
		`token hf_abcdefghijklmnopqrstuvwx no`: `token hf_**** no`,
		`https://user:pa55@host/x?y`:           `https://user:****@host/x?y`,
		`http://proxy.local:3128/`:             `http://proxy.local:3128/`,

		// Other spellings, and values that are more than a word.
		`"api_key" : "s3cret"`:                             `"api_key" : "****"`,
		`api_key : s3cret, x`:                              `api_key : ****, x`,
		`api_key => s3cret`:                                `api_key => ****`,
		`Invalid API key: s3cret`:                          `Invalid API key: ****`,
		`api_key=SecretStr('s3,cret'), tp=8`:               `api_key=****, tp=8`,
		`api_keys=['s3cret', "t"], tp=8`:                   `api_keys=****, tp=8`,
		`credentials={'a': 's3cret'}`:                      `credentials=****`,
		`--api-key=s3,cret;x --tp 8`:                       `--api-key=**** --tp 8`,
		`--api-key s3,cret)x]y --tp`:                       `--api-key **** --tp`,
		`DB_PASS=s3cret passphrase: 's3 cret'`:             `DB_PASS=**** passphrase: '****'`,
		`[(b'x-api-key', b's3cret'), (b'host', b'x')]`:     `[(b'x-api-key', b'****'), (b'host', b'x')]`,
		`(b'cookie', b'a=s3; b=cret')`:                     `(b'cookie', b'****')`,
		`(b'authorization', b'Bearer abc')`:                `(b'authorization', b'Bearer ****')`,
		`Authorization: s3cret`:                            `Authorization: ****`,
		`"authorization": "Token abc"`:                     `"authorization": "Token ****"`,
		`Proxy-Authorization: Basic dXNl`:                  `Proxy-Authorization: Basic ****`,
		`the bearer of news, basic facts`:                  `the bearer of news, basic facts`,
		`https://user:p@ss:word@host/x`:                    `https://user:****@host/x`,
		`https://s3cret@host/x`:                            `https://****@host/x`,
		`https://h/x?X-Amz-Signature=ab01&Expires=5`:       `https://h/x?X-Amz-Signature=****&Expires=5`,
		`got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.SflKxwR`: `got eyJ****`,

		// Name and value as two fields, as Kubernetes has them.
		`{"name": "HF_TOKEN", "value": "s3,cret"}, {"name": "HF_HOME", "value": "/m"}`: `{"name": "HF_TOKEN", "value": "****"}, {"name": "HF_HOME", "value": "/m"}`,
		`{\"name\":\"HF_TOKEN\",\"value\":\"s3 cret\"}`:                                `{\"name\":\"HF_TOKEN\",\"value\":\"****\"}`,
		"- name: API_KEY\n  value: s3cret\n- name: A\n  value: b":                      "- name: API_KEY\n  value: ****\n- name: A\n  value: b",
		`EnvVar{Name:HF_TOKEN,Value:s3cret,ValueFrom:nil,}`:                            `EnvVar{Name:HF_TOKEN,Value:****,ValueFrom:nil,}`,
		`V1EnvVar(name='HF_TOKEN', value='s3cret', value_from=None)`:                   `V1EnvVar(name='HF_TOKEN', value='****', value_from=None)`,

		// A command line that is a string, or goes on in its next line.
		`["bash","-c","serve --api-key \"s3 cret\" --tp 8"]`: `["bash","-c","serve --api-key \"****\" --tp 8"]`,
		`"bash -c \"serve --api-key s3cret\""`:               `"bash -c \"serve --api-key ****\""`,
		"--api-key \\\n  s3cret --tp 8":                      "--api-key \\\n  **** --tp 8",
		`serve --admin-api $'s3 cret' --api s3cret`:          `serve --admin-api $'****' --api ****`,

		// A header that a sentence tells of.
		`the Authorization header is Bearer s3cret12`:            `the Authorization header is Bearer ****`,
		`Authorization header: s3cret; X-Api-Key header: s3cret`: `Authorization header: ****; X-Api-Key header: ****`,
		`authorization header "s3cret" refused`:                  `authorization header "****" refused`,
		`invalid bearer token 's3cret12'`:                        `invalid bearer token '****'`,
		`map[Authorization:[Bearer s3cret] Host:[x]]`:            `map[Authorization:[Bearer ****] Host:[x]]`,

		// What looks like a secret and is none.
		`the Authorization header is missing`:                       `the Authorization header is missing`,
		`Inter-Token Latency, per-token scales`:                     `Inter-Token Latency, per-token scales`,
		`{"name": "sglang:token_usage", "value": 0.53}`:             `{"name": "sglang:token_usage", "value": 0.53}`,
		`max_total_num_tokens=454112, chunked_prefill_size=8192`:    `max_total_num_tokens=454112, chunked_prefill_size=8192`,
		`#token: 123, token usage: 0.02, gen throughput (token/s)`:  `#token: 123, token usage: 0.02, gen throughput (token/s)`,
		`mask_token='<mask>' mask_token_id=5 eos_token="</s>"`:      `mask_token='<mask>' mask_token_id=5 eos_token="</s>"`,
		`TOKENIZERS_PARALLELISM=false`:                              `TOKENIZERS_PARALLELISM=false`,
		`SGLANG_MAX_TOKENS=16`:                                      `SGLANG_MAX_TOKENS=16`,
		`KeyError: 'api_key'`:                                       `KeyError: 'api_key'`,
		`File "/sglang/srt/utils/hf_transformers_utils.py", line 5`: `File "/sglang/srt/utils/hf_transformers_utils.py", line 5`,
		``: ``,
	} {
		if got := String(in); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestName(t *testing.T) {
	for _, name := range []string{
		"HF_TOKEN", "hf_token", "--api-key", "--admin-api-key", "ssl_keyfile_password", "--ssl-keyfile-password",
		"OPENAI_API_KEY", "MY_SECRET", "AWS_SECRET_ACCESS_KEY", "DB_PASSWD", "GITHUB_TOKEN", "WANDB_API_KEY", "NGC_APIKEY",
		"TOKENIZER_API_KEY", "token", "HUGGING_FACE_HUB_TOKEN", "DB_PASS", "SSL_PASSPHRASE", "AUTHORIZATION", "AZURE_STORAGE_KEY", "--api-k",
	} {
		if !Name(name) {
			t.Errorf("%s must be a secret", name)
		}
	}
	for _, name := range []string{
		"", "HOME", "--tokenizer-path", "TOKENIZERS_PARALLELISM", "max_total_tokens", "--max-prefill-tokens", "eos_token_id",
		"num_tokens_per_bs", "--key", "MONKEY", "mask_token", "token_usage", "BYPASS", "--ssl-keyfile", "--a",
	} {
		if Name(name) {
			t.Errorf("%s must be no secret", name)
		}
	}
}

func TestArgv(t *testing.T) {
	for _, c := range []struct{ in, want []string }{
		{
			[]string{"python", "-m", "sglang.launch_server", "--api-key", "s", "--tp", "8", "--admin-api-key=s", "--tokenizer-path", "/t"},
			[]string{"python", "-m", "sglang.launch_server", "--api-key", "****", "--tp", "8", "--admin-api-key=****", "--tokenizer-path", "/t"},
		},
		{[]string{"env", "HF_TOKEN=x", "A=b", "python"}, []string{"env", "HF_TOKEN=****", "A=b", "python"}},
		{[]string{"--api-key", "-dashed", "--tp"}, []string{"--api-key", "****", "--tp"}},
		{[]string{"--api-key", "--tp", "8"}, []string{"--api-key", "--tp", "8"}},
		{[]string{"--api-key", "a=b"}, []string{"--api-key", "****"}},
		{[]string{"--api-key"}, []string{"--api-key"}},
		{[]string{"sh", "-c", "exec python --api-key 's' --tp 8"}, []string{"sh", "-c", "exec python --api-key '****' --tp 8"}},
		{[]string{"--api", "s", "--admin-api=s", "--ssl-keyfile", "/k"}, []string{"--api", "****", "--admin-api=****", "--ssl-keyfile", "/k"}},
		{[]string{"curl", "-H", "Authorization: Bearer s3"}, []string{"curl", "-H", "Authorization: Bearer ****"}},
		{nil, []string{}},
	} {
		before := strings.Join(c.in, "\x00")
		if diff := cmp.Diff(c.want, Argv(c.in)); diff != "" {
			t.Errorf("%q: %s", c.in, diff)
		}
		if strings.Join(c.in, "\x00") != before {
			t.Errorf("%q was changed in place", c.in)
		}
	}
}

func TestURL(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "https://hooks.example.com/services/T0/B0/xyz": "https://hooks.example.com/****",
		"https://h/?k=v": "https://h/****", "https://u:p@h": "https://h/****", "http://h:1": "http://h:1", "http://h/": "http://h/",
		"no url": "****", "://": "****",
	} {
		if got := URL(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// A secret written in any known form, anywhere in a text, is gone.
func TestPlantedSecretsVanish(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`Q[A-Za-z0-9_./+-]{7,40}Q`).Draw(t, "secret")
		name := rapid.SampledFrom([]string{"api_key", "admin_api_key", "hf_token", "HF_TOKEN", "ssl_keyfile_password", "MY_SECRET"}).Draw(t, "name")
		form := rapid.SampledFrom([]string{"N='S'", `N="S"`, "N=S", "'N': 'S'", `"N": "S"`, "N: S", "--N S", "--N=S", "'--N', 'S'", `--N \"S\"`, `{"name": "N", "value": "S"}`, "name: N\n  value: S"}).Draw(t, "form")
		planted := strings.NewReplacer("N", name, "S", secret).Replace(form)
		filler := rapid.StringMatching(`[a-z0-9 ,.()=\[\]]*`)
		text := filler.Draw(t, "before") + " " + planted + " " + filler.Draw(t, "after")
		if got := String(text); strings.Contains(got, secret) {
			t.Fatalf("%q keeps %q: %q", text, secret, got)
		}
	})
}

// Masking again changes nothing, and never breaks a text.
func FuzzString(f *testing.F) {
	for _, seed := range []string{
		`api_key='x', "hf_token": "y"`, `--api-key --api-key 'a' "b`, "api_key='\\", `token=token=token=x`, "https://a:b@c:d@e", "Bearer Basic aaaaaaaaaaaa",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := String(s)
		if twice := String(once); twice != once {
			t.Errorf("%q is masked as %q and then as %q", s, once, twice)
		}
		if utf8.ValidString(s) && !utf8.ValidString(once) {
			t.Errorf("%q is masked as broken text %q", s, once)
		}
		if strings.Count(once, "\n") > strings.Count(s, "\n") {
			t.Errorf("%q gained lines: %q", s, once)
		}
	})
}

func BenchmarkStringHarmless(b *testing.B) {
	line := strings.Repeat("[2026-02-19 05:52:10 TP3] Capturing batches (bs=128 avail_mem=8.41 GB) ", 4)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		String(line)
	}
}
