// Package options is what the flags of all commands have in common: one meaning for each
// name (Meanings), the groups that help shows them in, and old spellings.
//
// A flag that got another name keeps its old one for scripts: Alias adds it as a hidden
// flag with the same effect, which prints nothing. The commands use it, and the packages
// that write help and documents.
package options

import (
	"regexp"

	"github.com/spf13/pflag"
)

// aliasOf is the annotation of a hidden flag whose value is the name of the flag that replaces it.
const aliasOf = "unwire_alias_of"

// Alias adds old as a hidden alias of the flag name. Both share one value: the last one on the command
// line wins, and the flag counts as changed whichever was given.
func Alias(set *pflag.FlagSet, old, name string) {
	flag := set.Lookup(name)
	set.AddFlag(&pflag.Flag{
		Name:        old,
		Usage:       "same as --" + name,
		Value:       &alias{Value: flag.Value, flag: flag},
		DefValue:    flag.DefValue,
		NoOptDefVal: flag.NoOptDefVal,
		Hidden:      true,
		Annotations: map[string][]string{aliasOf: {name}},
	})
}

// An alias is the pflag.Value of a flag's old name: setting it sets the flag itself.
type alias struct {
	// Value is the value of the flag itself.
	pflag.Value

	// flag is the flag itself.
	flag *pflag.Flag
}

// Set sets the flag's value, and marks the flag as given on the command line.
func (a *alias) Set(s string) error {
	err := a.Value.Set(s)
	if err == nil {
		a.flag.Changed = true
	}
	return err
}

// AsTyped returns texts, which a user reads, with the flags as the user typed them: where the command line has
// an alias, the alias replaces the flag's name. The first replacement of each flag also has the name.
func AsTyped(set *pflag.FlagSet, texts ...string) []string {
	set.VisitAll(func(f *pflag.Flag) {
		a, old := f.Value.(*alias)
		if !old || !f.Changed {
			return
		}
		named := regexp.MustCompile(`--` + regexp.QuoteMeta(a.flag.Name) + `\b(-?)`)
		first := true
		for i, text := range texts {
			texts[i] = named.ReplaceAllStringFunc(text, func(found string) string {
				switch {
				case found[len(found)-1] == '-':
					return found // the beginning of a longer name
				case first:
					first = false
					return "--" + f.Name + " (the old name of --" + a.flag.Name + ")"
				}
				return "--" + f.Name
			})
		}
	})
	return texts
}

// Hide hides the flag old, which existing scripts may still use, from help. Unlike with Alias, its value
// has another type than the flag name that replaces it.
func Hide(set *pflag.FlagSet, old, name string) {
	flag := set.Lookup(old)
	flag.Hidden = true
	flag.Annotations = map[string][]string{aliasOf: {name}}
}
