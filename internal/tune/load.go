package tune

import "sglaunch/internal/config"

// Read reads a tune.toml. Its error is a config.Errors that holds everything
// found wrong, with file, line and the nearest known key.
func Read(path string) (Study, error) {
	s := DefaultStudy()
	if err := config.ReadFile(path, &s, func() error { return s.Validate() }); err != nil {
		return Study{}, err
	}
	return s, nil
}
