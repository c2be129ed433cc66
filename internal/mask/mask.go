package mask

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Stars stands where a secret stood.
const Stars = "****"

// secretWords make a name secret wherever they stand in it.
var secretWords = []string{
	"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "API_KEY", "APIKEY", "PRIVATE_KEY", "ACCESS_KEY", "STORAGE_KEY",
	"ACCOUNT_KEY", "SIGNING_KEY", "ENCRYPTION_KEY", "CREDENTIAL", "COOKIE", "AUTHORIZATION",
}

// secretOptions are those of SGLang; argparse takes their beginnings as well.
var secretOptions = []string{"--api-key", "--admin-api-key", "--ssl-keyfile-password"}

// harmlessNames hold a secret word and mean counts or tokenizers.
var harmlessNames = regexp.MustCompile(`TOKENIZ|TOKENS|_TOKEN_ID|TOKEN_(RATIO|STEP|USAGE|NUM|COUNT|LENGTH|LEN|SIZE)|(PER|NUM|MAX|MIN|BOS|EOS|PAD|UNK|STOP|MASK)_TOKEN$`)

// Name reports whether a variable, option or key of this name holds a secret.
// Spelling does not matter: HF_TOKEN, --admin-api-key, sslKeyfilePassword.
func Name(name string) bool {
	plain := strings.ToUpper(strings.NewReplacer("-", "_", " ", "_").Replace(strings.TrimLeft(name, "-")))
	if harmlessNames.MatchString(plain) {
		return strings.Contains(plain, "API_KEY") || strings.Contains(plain, "PASSWORD") || strings.Contains(plain, "SECRET")
	}
	for _, word := range secretWords {
		if strings.Contains(plain, word) {
			return true
		}
	}
	return strings.HasSuffix(plain, "_PASS") || abbreviates(name)
}

// abbreviates reports whether an option is the beginning of a secret one's name, and
// of no other's of SGLang.
func abbreviates(name string) bool {
	return len(name) >= len("--ap") && !strings.HasPrefix("--ssl-keyfile", name) &&
		slices.ContainsFunc(secretOptions, func(o string) bool { return strings.HasPrefix(o, name) })
}

// Value returns the value, or Stars where the name says that it is a secret.
func Value(name, value string) string {
	if value != "" && Name(name) {
		return Stars
	}
	return String(value)
}

// Argv masks a command: the argument after a secret option, the value of
// --option=value and NAME=value, and what String finds in the rest. The result
// is a new slice.
func Argv(argv []string) []string {
	masked := make([]string, len(argv))
	secretNext := false
	for i, arg := range argv {
		name, value, hasValue := strings.Cut(arg, "=")
		isOption := strings.HasPrefix(arg, "-")
		switch {
		case secretNext && !isLongOption(arg):
			masked[i] = Stars
			secretNext = false
		case hasValue && isName(name):
			masked[i] = name + "=" + Value(name, value)
			secretNext = false
		default:
			masked[i] = String(arg)
			secretNext = isOption && !hasValue && Name(arg)
		}
	}
	return masked
}

// isLongOption keeps "--api-key --tp 8" from masking the option that follows
// where the value is missing. A key may well begin with one dash.
func isLongOption(arg string) bool { return strings.HasPrefix(arg, "--") && isName(arg) }

var nameForm = regexp.MustCompile(`^-{0,2}[A-Za-z_][A-Za-z0-9_.-]*$`)

func isName(s string) bool { return nameForm.MatchString(s) }

// URL keeps scheme and host of a URL: path and query of a webhook are its key.
func URL(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return ""
	case err != nil || u.Host == "":
		return Stars
	case u.User == nil && strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == "":
		return raw
	}
	return u.Scheme + "://" + u.Host + "/" + Stars
}
