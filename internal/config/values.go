package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Devices are the GPUs of a launch: the zero value finds them from the
// command, otherwise UUIDs lists them.
type Devices struct {
	UUIDs []string
}

// Auto reports whether the devices are to be found from the command.
func (d Devices) Auto() bool { return len(d.UUIDs) == 0 }

// Size is a number of bytes, written as "1GiB".
type Size int64

var sizeUnits = []struct {
	name  string
	bytes Size
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// String writes the size in the largest unit that holds it exactly.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && s%u.bytes == 0 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.name
		}
	}
	return "0B"
}

// parseSize reads what String writes: a whole number and a binary unit.
// Decimal units are refused, as nobody can tell which of the two "GB" means.
func parseSize(text string) (Size, error) {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 0 || digits[0] == '+' || Size(n) > (1<<63-1)/u.bytes {
			break
		}
		return Size(n) * u.bytes, nil
	}
	return 0, fmt.Errorf("cannot use %q as a size: it takes a whole number and B, KiB, MiB, GiB or TiB, as in \"2GiB\"", text)
}

// MarshalText writes what String does.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what parseSize does.
func (s *Size) UnmarshalText(text []byte) error {
	parsed, err := parseSize(string(text))
	if err == nil {
		*s = parsed
	}
	return err
}

// formatDuration writes d as a person would: "90s" stays "1m30s", "4h0m0s"
// becomes "4h".
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
