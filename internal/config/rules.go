package config

import "sglaunch/phases"

// ReadRules reads a file of [[rule]] tables, by the same rules as ReadFile. Its
// error is an Errors.
func ReadRules(path string) (*phases.RuleSet, error) { return readRules(path, nil) }

// OwnRules are those of the file that phases.rules names; nil where it names none.
func (c Config) OwnRules() (*phases.RuleSet, error) {
	if !isRulesFile(c.Phases.Rules) {
		return nil, nil
	}
	return readRules(c.Phases.Rules, c.Files[c.Phases.Rules])
}

func readRules(path string, content []byte) (*phases.RuleSet, error) {
	var file struct {
		Rule []phases.Rule `toml:"rule"`
	}
	var rules *phases.RuleSet
	err := readContent(path, content, &file, func() (err error) {
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
