package cli

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/help"
	"unwire/cmd/internal/options"
)

// newRoot returns all commands, of which none is run.
func newRoot(t *testing.T) *cobra.Command {
	t.Helper()
	return rootCommand(app.New(t.Context(), nil, strings.NewReader(""), io.Discard, io.Discard), io.Discard, io.Discard)
}

// eachCommand calls do for each command below and with cmd that a user may run.
func eachCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	if !cmd.Hidden {
		do(cmd)
	}
	for _, c := range cmd.Commands() {
		eachCommand(c, do)
	}
}

// aliasOf is the name of the flag that replaces a hidden one; "" if there is none.
func aliasOf(f *pflag.Flag) string { return strings.Join(f.Annotations["unwire_alias_of"], "") }

// A flag means the same in all commands: what several commands have has a row in the table,
// with its types. What a command hides is an old spelling of one that it shows.
func TestFlagsHaveOneMeaning(t *testing.T) {
	t.Parallel()
	commands := map[string][]string{} // by flag
	types := map[string][]string{}
	eachCommand(newRoot(t), func(cmd *cobra.Command) {
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" || f.Name == "version" || cmd.Name() == "completion" || cmd.HasParent() && cmd.Parent().Name() == "completion" {
				return
			}
			if f.Hidden {
				if name := aliasOf(f); name == "" {
					t.Errorf("%s: the hidden --%s is no alias: use options.Alias or options.Hide", cmd.CommandPath(), f.Name)
				} else if shown := cmd.Flags().Lookup(name); shown == nil || shown.Hidden {
					t.Errorf("%s: --%s is an alias of --%s, which is not shown", cmd.CommandPath(), f.Name, name)
				}
				return
			}
			commands[f.Name] = append(commands[f.Name], cmd.CommandPath())
			types[f.Name] = append(types[f.Name], f.Value.Type())
		})
	})
	for name, list := range commands {
		meaning, known := options.Meanings[name]
		if !known {
			t.Errorf("--%s of %q has no row in options.Meanings", name, list)
			continue
		}
		if len(list) > 1 && (meaning.Text == "" || len(meaning.Types) == 0) {
			t.Errorf("--%s has no meaning in options.Meanings, and %d commands: %q", name, len(list), list)
		}
		for i, typ := range types[name] {
			if len(meaning.Types) > 0 && !slices.Contains(meaning.Types, typ) {
				t.Errorf("%s: --%s is of type %s, and the table has %q", list[i], name, typ, meaning.Types)
			}
		}
	}
	for name := range options.Meanings {
		if commands[name] == nil && options.Meanings[name].Topic != options.TopicGlobal {
			t.Errorf("--%s is in options.Meanings, and no command has it", name)
		}
	}
}

// Spellings that had several meanings are shown with one, and kept where they had another.
func TestOldSpellings(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	for command, spellings := range map[string][]string{
		"align":         {"all=unmatched"},
		"capture":       {"keylog=write-keylog"},
		"chat":          {"all=empty"},
		"chat fit":      {"out=output"},
		"decode":        {"all=full"},
		"diff":          {"all=show-ignored"},
		"drift":         {"capture=default-capture", "captures=traffic"},
		"encode":        {"format=in"},
		"grep":          {"hex=bytes", "list=exchanges"},
		"probe":         {"from=like", "plan=dry-run", "root=type"},
		"replay":        {"all=show-ignored", "budget=live-budget", "every=rate", "raw=set-raw", "timeout=max-time"},
		"replay suite":  {"budget=live-budget", "capture=default-capture", "every=rate", "timeout=max-time"},
		"replay verify": {"all=full", "refine=no-refine"},
		"schema diff":   {"capture=default-capture", "captures=traffic"},
		"schema refs":   {"number=field-number"},
		"schema update": {"version=client-version"},
		"serve":         {"settle=debounce"},
		"show":          {"all=full"},
	} {
		cmd, _, err := root.Find(strings.Fields(command))
		if err != nil {
			t.Fatal(err)
		}
		for _, pair := range spellings {
			old, name, _ := strings.Cut(pair, "=")
			if f := cmd.Flags().Lookup(old); f == nil || !f.Hidden || aliasOf(f) != name {
				t.Errorf("%s: --%s is no hidden alias of --%s", command, old, name)
			}
		}
	}
}

// --schema is a hidden spelling of --proto in every command.
func TestSchemaMeansProto(t *testing.T) {
	t.Parallel()
	eachCommand(newRoot(t), func(cmd *cobra.Command) {
		proto, old := cmd.Flags().Lookup("proto"), cmd.Flags().Lookup("schema")
		if (proto != nil) != (old != nil && old.Hidden && aliasOf(old) == "proto") {
			t.Errorf("%s: --schema is not --proto", cmd.CommandPath())
		}
	})
}

// Every command has a group, a text and an example; the flags of each example exist, and
// its arguments fit.
func TestHelpOfEveryCommand(t *testing.T) {
	t.Parallel()
	eachCommand(newRoot(t), func(cmd *cobra.Command) {
		name := cmd.CommandPath()
		if cmd.Name() == "help" || strings.HasPrefix(name, "unwire completion") || name == "unwire environment" {
			return
		}
		top := cmd
		for top.HasParent() && top.Parent().HasParent() {
			top = top.Parent()
		}
		if top.HasParent() && top.GroupID == "" {
			t.Errorf("%s has no group: give it one in commands.go", name)
		}
		page := help.NewPage(cmd)
		if len(page.Examples) == 0 || page.Short == "" {
			t.Errorf("%s has no example, or no short text", name)
		}
		for _, problem := range exampleProblems(page.Examples) {
			t.Errorf("%s: example %s", name, problem)
		}
		for _, line := range page.Examples {
			for _, args := range callsOf(line) {
				if err := parseCall(newRoot(t), args); err != nil {
					t.Errorf("%s: example %q: %v", name, line, err)
				}
			}
		}
		var b strings.Builder
		for _, width := range []int{40, 60, 80, 100, 200} {
			b.Reset()
			if err := page.Text(&b, width, help.Style{}); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if n := len([]rune(strings.TrimRight(line, "\n"))); n > width && strings.Contains(strings.TrimSpace(line), " ") && width >= 80 {
					t.Errorf("%s: %d columns at width %d: %s", name, n, width, line)
				}
			}
		}
	})
}

const (
	// maxComment is the longest comment of an example, in columns. A terminal of 80 columns shows it on one line.
	maxComment = 76

	// maxObvious is how many examples a command may have without comments.
	maxObvious = 2
)

// exampleProblems returns the lines of the examples of a command that do not follow the form: a comment of one line
// before each command or, if there are only one or two obvious commands, before none.
func exampleProblems(examples []string) (problems []string) {
	isComment := func(line string) bool { return strings.HasPrefix(line, "#") }
	some := slices.ContainsFunc(examples, isComment)
	if !some && len(examples) > maxObvious {
		problems = append(problems, fmt.Sprintf("%q needs a comment, as each of more than %d", examples[0], maxObvious))
	}
	for i, line := range examples {
		described := i > 0 && isComment(examples[i-1])
		switch text, ok := strings.CutPrefix(line, "# "); {
		case !isComment(line):
			if some && !described {
				problems = append(problems, fmt.Sprintf("%q has no comment, but others have", line))
			}
			if strings.Contains(line, " #") {
				problems = append(problems, fmt.Sprintf("%q ends with a comment: put it on the line before", line))
			}
		case described || i == len(examples)-1:
			problems = append(problems, fmt.Sprintf("%q is not followed by a command", line))
		case !ok || strings.ToUpper(text[:1]) != text[:1] || strings.HasSuffix(text, "."):
			problems = append(problems, fmt.Sprintf("%q is not a sentence without its full stop", line))
		case utf8.RuneCountInString(line) > maxComment:
			problems = append(problems, fmt.Sprintf("%q has more than %d columns", line, maxComment))
		}
	}
	return problems
}

// The form of examples is one comment of one line before each command.
func TestExampleProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lines string
		want  int
	}{
		{"unwire version|unwire version --json", 0},
		{"unwire version|unwire version --json|unwire version --help", 1},
		{"# Print it|unwire version|# Print JSON|unwire version --json", 0},
		{"unwire version|# Print JSON|unwire version --json", 1},
		{"# Print it|unwire version|unwire version --json", 1},
		{"# Print it|# for a script|unwire version", 1},
		{"# Print it|unwire version|# Print JSON", 1},
		{"unwire version   # for a script", 1},
		{"# print it|unwire version", 1},
		{"# Print it.|unwire version", 1},
		{"#Print it|unwire version", 1},
		{"# " + strings.Repeat("A", maxComment-1) + "|unwire version", 1},
	} {
		if got := exampleProblems(strings.Split(c.lines, "|")); len(got) != c.want {
			t.Errorf("%s: %q", c.lines, got)
		}
	}
}

// Help explains every word that stands for a value, in usage lines and in flags, on the page that has the word.
func TestHelpExplainsPlaceholders(t *testing.T) {
	t.Parallel()
	explained := 0
	eachCommand(newRoot(t), func(cmd *cobra.Command) {
		page := help.NewPage(cmd)
		var b strings.Builder
		if err := page.Text(&b, 80, help.Style{}); err != nil {
			t.Fatal(err)
		}
		for _, list := range slices.Concat(page.Arguments, page.Values) {
			explained++
			if list.Text == "(not explained)" {
				t.Errorf("%s: help does not explain %s: give it a row in placeholders.go", cmd.CommandPath(), list.Name)
			}
			if !strings.Contains(b.String(), "\n  "+list.Name+" ") {
				t.Errorf("%s: the help text lacks the row of %s", cmd.CommandPath(), list.Name)
			}
		}

		// A command with arguments has a list of them.
		if arguments := regexp.MustCompile(`[A-Z]`).MatchString(cmd.Use); cmd.Runnable() && arguments != (len(page.Arguments) > 0) {
			t.Errorf("%s: usage %q, and %d explained arguments", cmd.CommandPath(), cmd.Use, len(page.Arguments))
		}
	})
	if explained < 100 {
		t.Errorf("only %d placeholders are explained", explained)
	}
}

// callsOf are the arguments of the calls of unwire in a line for a shell.
func callsOf(line string) [][]string {
	var calls [][]string
	var words []string
	var word strings.Builder
	quote, any := rune(0), false
	flush := func() {
		if any {
			words = append(words, word.String())
		}
		word.Reset()
		any = false
	}
	end := func() {
		flush()
		if i := slices.Index(words, "unwire"); i == 0 || i > 0 && strings.Contains(words[i-1], "=") {
			calls = append(calls, words[i+1:])
		}
		words = nil
	}
	skip := false // the name of a file after > or <
	for _, r := range line + ";" {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, any = r, true
		case quote == 0 && r == '#' && !any:
			end()
			return calls
		case quote == 0 && (r == '|' || r == '&' || r == ';'):
			if skip {
				word.Reset()
				any, skip = false, false
			}
			end()
		case quote == 0 && (r == '>' || r == '<'):
			flush()
			skip = true
		case quote == 0 && r == ' ':
			if skip && any {
				word.Reset()
				any, skip = false, false
			}
			flush()
		default:
			word.WriteRune(r)
			any = true
		}
	}
	return calls
}

// parseCall reads the flags of a call and checks its arguments, and runs nothing.
func parseCall(root *cobra.Command, args []string) error {
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
