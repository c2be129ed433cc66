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
		for i := range file.Rule {
			file.Rule[i].File = path
		}
		if err := brokenRules("rule", file.Rule).orNil(); err != nil {
			return err
		}
		rules, err = phases.NewRuleSet(file.Rule)
		return err
	})
	return rules, err
}

// brokenRules says what is wrong with each rule of a table by itself.
func brokenRules(table string, rules []phases.Rule) (broken Errors) {
	for i := range rules {
		r := &rules[i]
		err := r.Validate()
		switch {
		case err == nil:
		case r.ID == "":
			broken = append(broken, NewError(element(table, i), nil, "%s", cause(err)))
		default:
			broken = append(broken, NewError(element(table, i), r.ID, "%s", cause(err)))
		}
	}
	return broken
}
