// Package help writes what commands say about themselves: the help text for a terminal,
// and the reference as Markdown and man pages, all from one Page.
//
// A page begins with what the command does, its usage and examples; then come its flags,
// in groups if there are many, the environment variables that it reads, and the prose. The
// package also has the groups of commands and the one table of environment variables.
// Package cli installs it; the program below docs writes the files.
package help

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"unwire/cmd/internal/options"
)

// A Page is the help text of one command, independent of the output format.
type Page struct {
	// Path is the full command, such as "unwire schema infer".
	Path string
	// Short describes the command in one sentence.
	Short string

	// Usage are the usage lines of the command.
	Usage []string

	// Aliases are other names of the command.
	Aliases []string
	// Examples are example command lines, and comments, which begin with # and describe the command after them.
	Examples []string

	// Groups are the subcommands, in titled groups.
	Groups []section

	// Arguments explain the words of the usage lines that stand for values, such as FILE.
	Arguments []row

	// Flags are the flags, in titled groups.
	Flags []section

	// Values explain the words in the names of flags that stand for values, such as TIME in --wait TIME.
	Values []row

	// Reads are the environment variables that the command reads.
	Reads []variable

	// Long is the longer explanation, which help prints last.
	Long string
}

// A section is a titled group of commands or flags in a help text.
type section struct {
	// Title is the heading.
	Title string

	// Rows are the commands or flags.
	Rows []row
}

// A row is one command or flag with its description.
type row struct {
	// Name is the command or flag.
	Name string

	// Text is its description.
	Text string
}

// manyFlags is the number of flags above which help groups them by topic.
const manyFlags = 12

// NewPage builds the help page of a command.
func NewPage(cmd *cobra.Command) *Page {
	p := &Page{Path: cmd.CommandPath(), Short: cmd.Short, Aliases: cmd.Aliases, Long: strings.TrimSpace(cmd.Long), Reads: variablesOf(cmd)}
	if cmd.Runnable() {
		p.Usage = append(p.Usage, cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		p.Usage = append(p.Usage, cmd.CommandPath()+" COMMAND")
	}
	for line := range strings.Lines(cmd.Example) {
		if line = strings.TrimSpace(line); line != "" {
			p.Examples = append(p.Examples, line)
		}
	}
	p.Groups = commandGroups(cmd)
	p.Arguments, p.Values = explanations(cmd)
	p.Flags = flagGroups(cmd)
	return p
}

// commandGroups returns the subcommands of a command in their groups.
func commandGroups(cmd *cobra.Command) []section {
	var list []section
	add := func(title, id string) {
		s := section{Title: title}
		for _, c := range cmd.Commands() {
			if (c.IsAvailableCommand() || c.Name() == "help") && c.GroupID == id {
				s.Rows = append(s.Rows, row{c.Name(), c.Short})
			}
		}
		if len(s.Rows) > 0 {
			list = append(list, s)
		}
	}
	for _, g := range cmd.Groups() {
		add(g.Title, g.ID)
	}
	add("Commands", "")
	return list
}

// flagGroups returns the visible flags of a command, grouped by topic if there are many. The flags that
// all commands share are last.
func flagGroups(cmd *cobra.Command) []section {
	rows := map[string][]row{}
	count := 0
	// Few flags are listed in one group, many by topic.
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" && f.Name != "version" {
			count++
		}
	})
	var global []row
	add := func(f *pflag.Flag) {
		switch topic := options.Meanings[f.Name].Topic; {
		case f.Hidden:
		case f.Name == "help" || f.Name == "version" || topic == options.TopicGlobal:
			global = append(global, flagRow(f))
		case count <= manyFlags:
			rows[""] = append(rows[""], flagRow(f))
		default:
			rows[topic] = append(rows[topic], flagRow(f))
		}
	}
	cmd.NonInheritedFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)

	// The topics come in the order of the table, the global flags last.
	var list []section
	if len(rows[""]) > 0 && count <= manyFlags {
		list = append(list, section{"Flags", rows[""]})
	}
	for _, topic := range options.Topics() {
		if len(rows[topic]) > 0 {
			list = append(list, section{topic, rows[topic]})
		}
	}
	if len(rows[""]) > 0 && count > manyFlags {
		list = append(list, section{"Other flags", rows[""]})
	}
	return append(list, section{options.TopicGlobal, global})
}

// flagRow formats a flag, such as "-o, --output FILE", with its description and default.
func flagRow(f *pflag.Flag) row {
	name := "    --" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", --" + f.Name
	}
	typ := f.Value.Type()
	value, text := pflag.UnquoteUsage(f)
	switch f.Name {
	case "help":
		text = "print this help"
	case "version":
		text = "print the version of unwire"
	}
	if typ != "bool" {
		if named := options.Meanings[f.Name].Value; named != "" && !strings.Contains(f.Usage, "`") {
			value = named
		}
		if f.NoOptDefVal != "" {
			name += "[=" + value + "]"
		} else {
			name += " " + value
		}
	}
	if d := f.DefValue; !slices.Contains([]string{"", "[]", "false", "0", "0s", "<nil>"}, d) && !strings.Contains(text, "(default") {
		text += " (default " + d + ")"
	}
	return row{name, text}
}
