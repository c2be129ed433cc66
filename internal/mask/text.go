package mask

import (
	"regexp"
	"strconv"
	"strings"
)

// The parts of the forms in which a secret appears in text.
const (
	nameText = `[A-Za-z0-9_.-]*(?i:token|secret|_pass|pass(?:w(?:or)?d|phrase)|cookie|(?:api|private|access|storage|account|signing|encryption)[ _-]?key|credential)[A-Za-z0-9_-]*`

	// A quoted value may hold escapes, and is open where a line was cut.
	quoted = `'(?:[^'\\\n]|\\.)*(?:'|\\?$|\n)|"(?:[^"\\\n]|\\.)*(?:"|\\?$|\n)`

	scheme = `(?:basic|bearer|token|digest|negotiate|apikey) +`

	// The same in a string that is quoted itself.
	escaped = `\\"(?:[^"\\\n]|\\[^"\n])*\\?"?`

	// What Python writes of a list or an object that holds quoted values, such as
	// SecretStr('...') and ['...', '...'].
	holder = `[A-Za-z_.]*[(\[{] ?[bru]?(?:` + quoted + `)[^\n)\]}]*[)\]}]?`
)

// The forms. Each has three groups: the name of the secret, what stands between,
// and the secret.
var (
	// assigned finds name=value, name: value and their quoted forms, as in
	// api_key='...', "api_key": "...", HF_TOKEN=..., and --api-key=...
	assigned = regexp.MustCompile(`(?m)(` + nameText + `)(\\?["']?(?: header)?(?:=|[ \t]*:[ \t]*| => | = )[bru]?)(` + escaped + `|` + quoted + `|` + holder + `|[^\s,;&)\]}"']+)`)

	// option finds --name value and --name=value, also in the repr of a list:
	// '--api-key', '...'. In a command line a value ends at a blank alone, and a
	// command line may be a string itself, with a value on its next line.
	option = regexp.MustCompile(`(?m)\B(--?` + nameText + `|--a[dp][a-z-]*|--ssl-keyfile-[a-z-]*)(\\?["']?(?:, ?|[ \t]+(?:\\\r?\n[ \t]*)?|=)[bru$]?)(` + escaped + `|` + quoted + `|(?:[^\s"'\\]|\\[^\s"'])+)`)

	// pair finds ('name', 'value'), as a list of headers has it.
	pair = regexp.MustCompile(`(?m)\([bru]?["'](` + nameText + `)(["'], ?[bru]?)(` + quoted + `)`)

	// entry finds a name and its value as two fields of one thing: Kubernetes writes
	// environments so, in JSON, in YAML and in its logs.
	entry = regexp.MustCompile(`(?m)\b(?i:name|key)\\?["']?[ \t]*[:=][ \t]*\\?["']?(` + nameText + `)(\\?["']?[\s,]+\\?["']?(?i:value)\\?["']?[ \t]*[:=][ \t]*)(` + escaped + `|` + quoted + `|[^\s,;&)\]}"']+)`)
)

// bare finds secrets that are known by their own form. hf_transformers_utils.py
// is none, so the random part of a Hugging Face token has no underscore.
var bare = regexp.MustCompile(`\b(hf_|ghp_)[A-Za-z0-9]{20,}|\b(sk-|github_pat_|glpat-|nvapi-|xox[abpr]-)[A-Za-z0-9_-]{20,}|\b(eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*`)

// header finds the credentials of an Authorization header, also where a sentence
// tells them or its name is missing, if they look like some.
var header = regexp.MustCompile(`(?i)((?:authorization\\?["']?(?:, ?| ?[:=] ?)|authorization header\\?["']?(?: value)? ?[:=] ?)\[?(?:[bru]?\\?["'])?(?:` + scheme + `)?` +
	`|authorization header(?: value)?(?: is| was| of)? +(?:\\?["'](?:` + scheme + `)?|` + scheme + `)` +
	`|\bbearer token +\\?["']|\b(?:bearer|basic) +)([^\s"'\\,;)}\]]+)`)

// userinfo finds the password in scheme://user:password@host, and the token that
// stands there alone.
var userinfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://(?:[^\s:/@'"]*:)?)([^\s/'"]+)@`)

// signed finds the signature of a URL that is a key by itself.
var signed = regexp.MustCompile(`(?i)([?&](?:x-amz-)?sig(?:nature)?=)([^\s&'"]+)`)

// String masks the secrets in a text of any size, such as a line of output.
func String(s string) string {
	if !suspicious(s) {
		return s
	}
	s = header.ReplaceAllStringFunc(s, credentials)
	s = replace(option, s)
	s = replace(pair, s)
	s = replace(entry, s)
	s = replace(assigned, s)
	s = userinfo.ReplaceAllString(s, "${1}"+Stars+"@")
	s = signed.ReplaceAllString(s, "${1}"+Stars)
	return bare.ReplaceAllString(s, "${1}${2}${3}"+Stars)
}

// suspicious is a cheap test that most lines fail.
func suspicious(s string) bool {
	lower := strings.ToLower(s)
	for _, hint := range []string{
		"token", "secret", "pass", "key", "credential", "cookie", "authorization", "bearer ", "basic ", "://", "sig",
		"--a", "hf_", "sk-", "ghp_", "github_pat_", "glpat-", "nvapi-", "xox", "eyj",
	} {
		if strings.Contains(lower, hint) {
			return true
		}
	}
	return false
}

// replace masks group 3 of each match whose group 1 is the name of a secret.
func replace(form *regexp.Regexp, s string) string {
	return form.ReplaceAllStringFunc(s, func(match string) string {
		g := form.FindStringSubmatch(match)
		if g == nil || !Name(g[1]) || isPlain(g[3]) || isCount(g[1], g[3]) {
			return match
		}
		return match[:len(match)-len(g[3])] + hide(g[3])
	})
}

// credentials masks those of one header. What follows the word "bearer" in a
// sentence is none, unless it looks like some.
func credentials(match string) string {
	g := header.FindStringSubmatch(match)
	labelled := strings.ContainsAny(g[1], ":=,")
	likely := len(g[2]) >= 8 || len(g[2]) >= 6 && strings.ContainsAny(g[2], "0123456789")
	if isPlain(g[2]) || !labelled && !likely {
		return match
	}
	return g[1] + Stars
}

// isPlain spares what says that there is no secret.
func isPlain(value string) bool {
	switch strings.ToLower(strings.Trim(value, `\'"`)) {
	case "", "none", "null", "true", "false", Stars:
		return true
	}
	return false
}

// isCount spares numbers of tokens, as in "#token: 123" of each decode line.
func isCount(name, value string) bool {
	_, err := strconv.ParseFloat(strings.TrimSuffix(value, "%"), 64)
	return err == nil && strings.HasSuffix(strings.ToLower(name), "token")
}

// hide keeps the quotes of a value, so that the text around it still reads.
func hide(value string) string {
	for _, q := range []string{`\"`, `"`, `'`} {
		if inner, ok := strings.CutPrefix(value, q); ok {
			if strings.HasSuffix(inner, q) {
				return q + Stars + q
			}
			if strings.HasSuffix(inner, "\n") {
				return q + Stars + "\n"
			}
			return q + Stars
		}
	}
	return Stars
}
