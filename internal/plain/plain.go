// Package plain takes from an error what the sentence around it says already.
package plain

import (
	"errors"
	"io/fs"
)

// Error is what went wrong, without the operation and the path of a file: whoever
// calls it names both in words of its own. Any other error stays as it is.
func Error(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
