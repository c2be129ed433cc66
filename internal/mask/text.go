package mask

import (
	"regexp"
	"strconv"
	"strings"
)

// The forms in which a secret appears in text. Each has the groups keep, the
// part before the secret, and secret.
const (
	nameText = `[A-Za-z0-9_.-]*(?i:token|secret|passw(?:or)?d|api[_-]?key|private[_-]?key|access[_-]?key|credential)[A-Za-z0-9_-]*`

	// A quoted value may hold escapes, and is open where a line was cut.
	quoted = `'(?:[^'\\\n]|\\.)*(?:'|\\?$|\n)|"(?:[^"\\\n]|\\.)*(?:"|\\?$|\n)`
)

// assigned finds name=value, name: value and their quoted forms, as in
// api_key='...', "api_key": "...", HF_TOKEN=..., and --api-key=...
var assigned = regexp.MustCompile(`(?m)(` + nameText + `)(\\?["']?(?:=|: ?| = )[bru]?)(\\"(?:[^"\\\n]|\\[^"\n])*\\?"?|` + quoted + `|[^\s,;&)\]}"']+)`)

// option finds --name value, also in the repr of a list: '--api-key', '...'.
var option = regexp.MustCompile(`(?m)(--?` + nameText + `)(["']?(?:, ?| +))(` + quoted + `|[^\s,;&)\]}"']+)`)

// bare finds secrets that are known by their own form. hf_transformers_utils.py
// is none, so the random part of a Hugging Face token has no underscore.
var bare = regexp.MustCompile(`\b(hf_|ghp_)[A-Za-z0-9]{20,}|\b(sk-|github_pat_|glpat-|nvapi-|xox[abpr]-)[A-Za-z0-9_-]{20,}`)

// header finds the credentials of an Authorization header.
var header = regexp.MustCompile(`(?i)\b(bearer|basic)( +)([A-Za-z0-9._~+/=-]{8,})`)

// userinfo finds the password in scheme://user:password@host.
var userinfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s:/@'"]*:)([^\s/@'"]+)@`)

// String masks the secrets in a text of any size, such as a line of output.
func String(s string) string {
	if !suspicious(s) {
		return s
	}
	s = replace(assigned, s)
	s = replace(option, s)
	s = header.ReplaceAllString(s, "${1}${2}"+Stars)
	s = userinfo.ReplaceAllString(s, "${1}"+Stars+"@")
	return bare.ReplaceAllString(s, "${1}${2}"+Stars)
}

// suspicious is a cheap test that most lines fail.
func suspicious(s string) bool {
	lower := strings.ToLower(s)
	for _, hint := range []string{
		"token", "secret", "passw", "key", "credential", "bearer", "basic ", "://", "hf_", "sk-", "ghp_", "github_pat_", "glpat-", "nvapi-", "xox",
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
		return g[1] + g[2] + hide(g[3])
	})
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
