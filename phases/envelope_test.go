package phases

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// sameOpened fails where the short way into an envelope finds what the long one does not.
func sameOpened(t rapid.TB, text string) {
	t.Helper()
	short, ok := openPlain(nil, []byte(text))
	if !ok {
		return
	}
	if long, ok := openAny(nil, []byte(text)); !ok || string(long) != string(short) {
		t.Fatalf("of %q: %q, and the long way %q, %t", text, short, long, ok)
	}
}

// TestEnvelopes: the forms that collectors write are known without the long way.
func TestEnvelopes(t *testing.T) {
	for text, want := range map[string]string{
		`{"log":"[2026-02-19 05:48:02] x\n","stream":"stderr","time":"2026-02-19T05:48:02.1Z"}`: "[2026-02-19 05:48:02] x\n",
		`{"stream":"stdout","log":"a\tb \"c\" \u003cd\u003e \u001b[31m\\ 你好█\r\n"}`:             "a\tb \"c\" <d> \x1b[31m\\ 你好█\r\n",
		`{"message":"x"}`:                    "x",
		`{"log":"","msg":"x"}`:               "x",
		`{"host":"","content":"\u2588 10%"}`: "█ 10%",
	} {
		if got, ok := openPlain(nil, []byte(text)); !ok || string(got) != want {
			t.Errorf("%s: got %q, %t", text, got, ok)
		}
		sameOpened(t, text)
	}
}

// TestEnvelopesEitherWay: both ways into an envelope find the same.
func TestEnvelopesEitherWay(t *testing.T) {
	names := []string{"log", "message", "msg", "content", "stream", "Log", "mſg", "a.b", "", `lo\u0067`}
	texts := []string{"x", "", `a\nb`, `\u001b[0m`, `\u00e9`, `\u12`, `\u+123`, `\ud83d\ude00`, `\q`, "\xff", "é", "\xc3", `\u0028\`, "\x01", "\x7f", `\u001` + "\x10", `{}`, "█"}
	ends := []string{`"`, `"`, `"`, `"`, `" `, ``, `"}`}
	rapid.Check(t, func(t *rapid.T) {
		var all []string
		for range rapid.IntRange(1, 4).Draw(t, "members") {
			value := rapid.SampledFrom(texts).Draw(t, "text") + rapid.SampledFrom(texts).Draw(t, "text")
			all = append(all, `"`+rapid.SampledFrom(names).Draw(t, "name")+`":"`+value+rapid.SampledFrom(ends).Draw(t, "end"))
		}
		sameOpened(t, "{"+strings.Join(all, rapid.SampledFrom([]string{",", ",", ", ", ""}).Draw(t, "comma"))+"}")
	})
}

func FuzzEnvelope(f *testing.F) {
	f.Add(`log":"[2026-02-19 05:48:02] x\n","stream":"stderr"`)
	f.Add(`log":"\u001b[31m\\\"","msg":""`)
	f.Fuzz(func(t *testing.T, text string) { sameOpened(t, `{"`+text+`}`) })
}
