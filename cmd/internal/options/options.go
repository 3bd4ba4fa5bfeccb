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

// An alias is the pflag.Value of an alias: setting it sets the other flag.
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

// Hide hides the old flag, which remains for existing scripts. Unlike an Alias its value has another
// type than that of the flag name, which replaces it.
func Hide(set *pflag.FlagSet, old, name string) {
	flag := set.Lookup(old)
	flag.Hidden = true
	flag.Annotations = map[string][]string{aliasOf: {name}}
}
