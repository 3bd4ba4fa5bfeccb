package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"unwire/decode/suggest"
)

// otherNames maps names that other tools use for a task to the unwire commands for it.
var otherNames = map[string][]string{
	"anonymize":    {"redact"},
	"annotate":     {"note"},
	"auth":         {"credentials"},
	"cat":          {"show", "decode"},
	"compare":      {"diff", "schema diff"},
	"conversation": {"chat"},
	"convert":      {"export", "import"},
	"dump":         {"decode", "export"},
	"explain":      {"show"},
	"fuzz":         {"probe"},
	"generate":     {"schema infer", "schema extract"},
	"inspect":      {"show"},
	"list":         {"ls", "schema ls"},
	"login":        {"credentials"},
	"print":        {"show", "schema print"},
	"proxy":        {"capture"},
	"record":       {"capture"},
	"resend":       {"replay"},
	"sanitize":     {"redact"},
	"search":       {"grep", "schema find"},
	"send":         {"replay"},
	"setup":        {"doctor", "ca"},
	"sniff":        {"capture"},
	"status":       {"doctor"},
	"test":         {"replay suite", "schema check"},
	"transcript":   {"chat"},
	"validate":     {"schema check"},
	"verify":       {"replay verify", "schema check"},
	"view":         {"show"},
}

// UnknownCommand returns an error with suggestions if args, the arguments of the program, name a
// command that does not exist; nil if it exists.
func UnknownCommand(root *cobra.Command, args []string) error {
	parent, rest, _ := root.Find(args)
	if parent == nil || !isGroup(parent) {
		return nil
	}
	name := firstArgument(rest)
	if name == "" {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", name)
	if parent.HasParent() {
		text = parent.CommandPath() + ": " + text
	}
	hint := fmt.Sprintf("see '%s --help'", parent.CommandPath())
	if list := suggestions(root, parent, name); len(list) > 0 {
		hint = "did you mean '" + strings.Join(list, "' or '") + "'? '" + parent.CommandPath() + " --help' lists all commands"
	}
	return Fail(ExitUsage, fmt.Errorf("%s", text), hint)
}

// MisspelledSubcommand returns an error if the first argument of a command that also has subcommands is no file, and
// similar to the name of a subcommand; otherwise nil.
func MisspelledSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || !cmd.HasAvailableSubCommands() || isThere(args[0]) {
		return nil
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && suggest.Distance(args[0], sub.Name()) <= len(sub.Name())/3 {
			return Fail(ExitUsage, fmt.Errorf("%s: %q is neither a command nor an existing file", cmd.CommandPath(), args[0]),
				fmt.Sprintf("did you mean '%s'?", sub.CommandPath()))
		}
	}
	return nil
}

// UnknownFlag returns the hint for a flag that a command does not have, with the flag that has the most similar name.
func UnknownFlag(cmd *cobra.Command, name string) string {
	hint := fmt.Sprintf("see '%s --help'", cmd.CommandPath())
	best, least := "", len(name)/3+1
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := suggest.Distance(name, f.Name); !f.Hidden && d < least {
			best, least = f.Name, d
		}
	})
	if best == "" {
		return hint
	}
	return fmt.Sprintf("did you mean --%s? %s", best, hint)
}

// RefuseUnknown makes each command below root that only groups subcommands fail if it gets an argument. Without it,
// cobra prints help for an unknown subcommand and exits with status 0. UnknownCommand then returns the error.
func RefuseUnknown(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		RefuseUnknown(cmd)
		if cmd.Runnable() || !cmd.HasSubCommands() {
			continue
		}
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		cmd.Args = ExactArgs()
	}
}

// isGroup reports whether a command only groups subcommands and does nothing itself.
func isGroup(cmd *cobra.Command) bool {
	return cmd.HasAvailableSubCommands() && (!cmd.HasParent() || cmd.Use == cmd.Name())
}

// firstArgument returns the first argument that is neither a flag nor the value of --color; "" if there
// is none.
func firstArgument(args []string) string {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--":
			return ""
		case arg == "--color":
			i++
		case arg != "" && !strings.HasPrefix(arg, "-"):
			return arg
		}
	}
	return ""
}

// maxSuggestions bounds the commands that are suggested for one name.
const maxSuggestions = 3

// suggestions returns up to three commands that a user may have meant by an unknown name below parent:
// commands with a similar name, and commands for which other tools use a similar name. Names are compared
// by edit distance. Commands below parent come first.
func suggestions(root, parent *cobra.Command, name string) []string {
	name = strings.ToLower(name)
	all := allCommands(root)
	slices.SortStableFunc(all, func(a, b *cobra.Command) int { return rank(a, parent) - rank(b, parent) })
	var list []string
	add := func(cmd *cobra.Command) {
		if path := cmd.CommandPath(); len(list) < maxSuggestions && !slices.Contains(list, path) {
			list = append(list, path)
		}
	}

	// Names of other tools and our own compete at each edit distance; the smallest distance with a
	// match wins.
	for distance := 0; distance <= min(2, (len(name)+1)/3) && len(list) == 0; distance++ {
		for _, other := range slices.Sorted(maps.Keys(otherNames)) {
			if suggest.Distance(name, other) != distance {
				continue
			}
			for _, path := range otherNames[other] {
				if cmd, rest, err := root.Find(strings.Fields(path)); err == nil && len(rest) == 0 {
					add(cmd)
				}
			}
		}
		slices.SortStableFunc(list, func(a, b string) int { return within(b, parent) - within(a, parent) })
		for _, cmd := range all {
			if slices.ContainsFunc(append([]string{cmd.Name()}, cmd.Aliases...), func(known string) bool { return suggest.Distance(name, known) == distance }) {
				add(cmd)
			}
		}
	}

	// A prefix counts only if nothing is spelled alike.
	for _, cmd := range all {
		if len(list) == 0 && len(name) >= 3 && cmd.Parent() == parent && strings.HasPrefix(cmd.Name(), name) {
			add(cmd)
		}
	}
	return list
}

// within returns 1 if the command path is below parent and parent is not the root, and otherwise 0, for
// sorting.
func within(path string, parent *cobra.Command) int {
	if parent.HasParent() && strings.HasPrefix(path, parent.CommandPath()+" ") {
		return 1
	}
	return 0
}

// rank returns the sort key of a suggested command: 0 for a direct subcommand of parent, 1 for others.
func rank(cmd, parent *cobra.Command) int {
	if cmd.Parent() == parent {
		return 0
	}
	return 1
}

// allCommands returns the visible commands below root, at all levels.
func allCommands(cmd *cobra.Command) []*cobra.Command {
	var list []*cobra.Command
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			list = append(append(list, c), allCommands(c)...)
		}
	}
	return list
}
