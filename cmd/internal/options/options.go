// Package options is what the flags of all commands have in common: one meaning for each
// name (Meanings), the groups that help shows them in, and old spellings.
//
// A flag that got another name keeps its old one for scripts: Alias adds it as a hidden
// flag with the same effect, which prints nothing. The commands use it, and the packages
// that write help and documents.
package options

import "github.com/spf13/pflag"

// aliasOf is the annotation of a hidden flag with the name that replaces it.
const aliasOf = "unwire_alias_of" // tests read it

// Alias makes old a hidden spelling of the flag name of the same command. The two have
// one value, so that the last one on a command line decides, and the flag counts as
// changed whichever was given.
func Alias(set *pflag.FlagSet, old, name string) {
	flag := set.Lookup(name)
	set.AddFlag(&pflag.Flag{
		Name:        old,
		Usage:       "the same as --" + name,
		Value:       &alias{Value: flag.Value, flag: flag},
		DefValue:    flag.DefValue,
		NoOptDefVal: flag.NoOptDefVal,
		Hidden:      true,
		Annotations: map[string][]string{aliasOf: {name}},
	})
}

// An alias sets the value of another flag.
type alias struct {
	pflag.Value
	flag *pflag.Flag
}

func (a *alias) Set(s string) error {
	err := a.Value.Set(s)
	if err == nil {
		a.flag.Changed = true
	}
	return err
}

// Hide hides an old flag that is kept for scripts and takes another type of value than the
// flag name that replaces it.
func Hide(set *pflag.FlagSet, old, name string) {
	flag := set.Lookup(old)
	flag.Hidden = true
	flag.Annotations = map[string][]string{aliasOf: {name}}
}
