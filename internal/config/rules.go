package config

import "sglaunch/phases"

// ReadRules reads a file of [[rule]] tables, by the same rules as ReadFile. Its
// error is an Errors.
func ReadRules(path string) (*phases.RuleSet, error) {
	var file struct {
		Rule []phases.Rule `toml:"rule"`
	}
	var rules *phases.RuleSet
	err := ReadFile(path, &file, func() (err error) {
		var broken Errors
		for i := range file.Rule {
			r := &file.Rule[i]
			r.File = path
			if err := r.Validate(); err != nil {
				broken = append(broken, NewError(element("rule", i), r.ID, "%s", cause(err)))
			}
		}
		if err := broken.orNil(); err != nil {
			return err
		}
		rules, err = phases.NewRuleSet(file.Rule)
		return err
	})
	return rules, err
}
