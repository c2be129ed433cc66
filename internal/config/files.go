package config

import (
	"errors"
	"os"
	"path/filepath"

	"sglaunch/internal/plain"
	"sglaunch/internal/trust"
)

// checkFiles looks at each file that the configuration names and that decides
// what is run: it must exist, and as root nobody else may be able to change it.
func (l *loader) checkFiles() {
	c := &l.config
	l.checkEnvFile("server.env_file", c.Server.EnvFile)
	l.checkFolder("server.directory", c.Server.Directory)
	if isRulesFile(c.Phases.Rules) {
		l.checkRulesFile("phases.rules", c.Phases.Rules)
	}
	for i, p := range c.Patches {
		l.checkFile(element("patch", i)+".diff", p.Diff)
		for j, v := range p.Variants {
			l.checkFile(element(element("patch", i)+".variant", j)+".diff", v.Diff)
		}
	}
	for _, hook := range hooks(c) {
		if argv := hook.argv(); len(argv) > 0 && filepath.IsAbs(argv[0]) {
			l.checkFile(hook.Key, argv[0])
		}
	}
}

// checkFile reports whether the file may be used.
func (l *loader) checkFile(key, path string) bool {
	if path == "" || l.held != nil {
		return true
	}
	err := readable(path)
	if err == nil {
		err = trust.Check(path)
	}
	if err != nil {
		l.refuse(key, path, err)
	}
	return err == nil
}

func (l *loader) checkRulesFile(key, path string) {
	if !l.checkFile(key, path) {
		return
	}
	content := l.content(key, path)
	if content == nil {
		return
	}
	var broken Errors
	if _, err := readRules(path, content); errors.As(err, &broken) {
		l.errors = append(l.errors, broken...)
	}
}

func (l *loader) checkEnvFile(key, path string) {
	if path == "" {
		return
	}
	_, problems := parseEnv(path, l.content(key, path))
	l.errors = append(l.errors, problems[:min(len(problems), maxErrors)]...)
}

// content is what a file holds, or held; nil where it is refused.
func (l *loader) content(key, path string) []byte {
	content, held := l.held[path]
	if !held {
		var err error
		if content, err = trust.Read(path, maxFile); err != nil {
			l.refuse(key, path, err)
			return nil
		}
	}
	l.config.Files[path] = content
	return content
}

func (l *loader) checkFolder(key, path string) {
	if path == "" || l.held != nil {
		return
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		l.refuse(key, path, plain.Error(err))
	case !info.IsDir():
		l.fail(key, path, "it is no folder")
	}
}

// refuse says why a file that the configuration names cannot be used.
func (l *loader) refuse(key, path string, err error) {
	l.fail(key, path, err.Error()).Hint = fileError(path, err).Hint
}

func readable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return plain.Error(err)
	case !info.Mode().IsRegular():
		return errors.New("it is no regular file")
	}
	return nil
}
