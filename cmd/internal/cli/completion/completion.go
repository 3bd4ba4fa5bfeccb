// Package completion offers what may be typed next: the exchanges of a capture, methods,
// types, the words that a flag takes, and files by their suffix.
//
// Add looks at the name of each flag and at the usage of each command, so that a new
// command needs nothing of its own. What is offered is read within a time limit, whatever a
// capture holds, and has no character that could drive a terminal. Package cli adds it to
// all commands.
package completion

import (
	"context"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/proto"
)

// limit is the time within which the completions must be found. Otherwise none are offered, so that the
// shell does not have to wait.
const limit = 300 * time.Millisecond

// maxCandidates is the largest number of completions that are offered.
const maxCandidates = 500

// An offer finds the completions for the word that begins with prefix, an argument or a flag's value of
// cmd. args are the arguments before it. The directive tells the shell whether to complete file names
// instead.
type offer func(ctx context.Context, cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective)

// Directives for the shell: files lets it complete file names, nothing does not.
const (
	files   = cobra.ShellCompDirectiveDefault
	nothing = cobra.ShellCompDirectiveNoFileComp
)

// Add adds shell completion to the flags and arguments of a command and of all its subcommands.
func Add(cmd *cobra.Command) {
	if own := cmd.ValidArgsFunction; own != nil {
		cmd.ValidArgsFunction = bounded(func(ctx context.Context, cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return own(cmd, args, prefix)
		})
	} else if cmd.Runnable() && !cmd.HasSubCommands() || strings.Contains(cmd.Use, " ") {
		cmd.ValidArgsFunction = bounded(arguments(cmd.Use))
	}
	addTo := func(f *pflag.Flag) {
		if find := ofFlag(cmd, f); find != nil {
			// It fails only if the flag has a completion of its own.
			_ = cmd.RegisterFlagCompletionFunc(f.Name, bounded(find))
		}
	}
	cmd.LocalNonPersistentFlags().VisitAll(addTo)
	cmd.PersistentFlags().VisitAll(addTo)
	for _, c := range cmd.Commands() {
		if c.Name() != "help" && c.Name() != "completion" && !c.Hidden {
			Add(c)
		}
	}
}

// bounded turns an offer into a completion function for cobra. It limits the time and the number of the
// completions, and removes those that a shell would misinterpret.
func bounded(find offer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), limit)
		defer cancel()
		type found struct {
			list      []cobra.Completion
			directive cobra.ShellCompDirective
		}
		done := make(chan found, 1)
		go func() {
			list, directive := find(ctx, cmd, args, prefix)
			done <- found{list, directive}
		}()
		select {
		case f := <-done:
			return clean(f.list, prefix, f.directive), f.directive
		case <-ctx.Done():
			return nil, nothing
		}
	}
}

// clean returns the completions in list that begin with prefix and contain only characters that are safe
// in a shell. If directive says that list contains file extensions, it returns list unchanged.
func clean(list []cobra.Completion, prefix string, directive cobra.ShellCompDirective) []cobra.Completion {
	if directive&(cobra.ShellCompDirectiveFilterFileExt|cobra.ShellCompDirectiveFilterDirs) != 0 {
		return list // suffixes, not candidates
	}
	kept := list[:0]
	for _, c := range list {
		word, text, described := strings.Cut(c, "\t")
		if len(kept) == maxCandidates || !strings.HasPrefix(word, prefix) || strings.ContainsFunc(word, unfit) {
			continue
		}
		if described {
			word += "\t" + term.Clean(text)
		}
		kept = append(kept, word)
	}
	return kept
}

// unfit reports whether a completion must not contain r, because r is a control character or special to a
// shell.
func unfit(r rune) bool {
	return !unicode.IsPrint(r) || unicode.IsSpace(r) || strings.ContainsRune("`$\"'\\;&|<>(){}!*?", r)
}

// words returns an offer of fixed words.
func words(list ...string) offer {
	return func(context.Context, *cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return append([]cobra.Completion(nil), list...), nothing
	}
}

// suffixes returns an offer that lets the shell complete files with the given extensions, and folders.
func suffixes(list ...string) offer {
	return func(context.Context, *cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return append([]cobra.Completion(nil), list...), cobra.ShellCompDirectiveFilterFileExt
	}
}

// folders is an offer that lets the shell complete names of folders.
func folders(context.Context, *cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// choice matches the help text of a flag that lists its values, with or without a title: "output
// format: text, md (Markdown) or json".
var choice = regexp.MustCompile(`^(?:[a-z ]+: )?((?:[a-z0-9]+(?: \([^)]*\))?, )*[a-z0-9]+(?: \([^)]*\))? or [a-z0-9]+)\b`)

// ofFlag returns the offer for the values of a flag; nil if the shell should complete file names.
func ofFlag(cmd *cobra.Command, f *pflag.Flag) offer {
	// Flags with the same name mean the same in all commands, so the name decides.
	switch f.Name {
	case "method":
		return methods
	case "type", "root":
		return types
	case "proto", "schema", "into":
		return suffixes("proto", "binpb", "pb", "desc", "uwc")
	case "like", "traffic", "default-capture":
		return address
	case "suite":
		return folders
	case "upstream-ca", "client-cert", "client-key", "ca-file":
		return suffixes("pem", "crt", "cer", "key")
	case "dir":
		return words("up", "down")
	case "after":
		return func(ctx context.Context, _ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return append(exchangesOf(ctx, args), "auto\texchanges that issued IDs in this request"), nothing
		}
	case "kind":
		return words("service", "method", "message", "enum")
	case "protocol":
		return words("connect-unary", "connect-stream", "grpc", "grpc-web")
	case "profile":
		return words(proto.Profile().Name, app.NoDefinitions, app.AutoProfile)
	case "store":
		return words("system", "nss", "java")
	case "print-config":
		return words("opencode", "codex", "claude", "openai")
	case "reuse":
		return words("on", "off")
	case "transport":
		return words("auto", "http2", "sse")
	}

	// Other flags list their values in the help text, as "a, b or c".
	if f.Value.Type() == "string" {
		if m := choice.FindStringSubmatch(f.Usage); m != nil {
			return words(choices(m[1])...)
		}
	}
	return nil
}

// choices splits a list of values such as "a, b (text) or c" into the values a, b and c.
func choices(list string) []string {
	var out []string
	for part := range strings.SplitSeq(strings.Replace(list, " or ", ", ", 1), ", ") {
		word, text, _ := strings.Cut(part, " (")
		if text != "" {
			word += "\t" + strings.TrimSuffix(text, ")")
		}
		out = append(out, word)
	}
	return out
}

// positional returns the arguments of a usage line, without its flags and their values.
func positional(use string) []string {
	var names []string
	words := strings.Fields(use)[1:]
	for i := 0; i < len(words); i++ {
		switch word := strings.Trim(words[i], "[]"); {
		case word == "flags":
		case word == "--":
			// What follows belongs to another program.
			return names
		case strings.HasPrefix(word, "-"):
			i++
		default:
			names = append(names, words[i])
		}
	}
	return names
}

// arguments returns an offer for a command's arguments. use is the command's usage line, in which the
// name of each argument, such as F.uwc, determines what is offered.
func arguments(use string) offer {
	names := positional(use)
	return func(ctx context.Context, cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(names) == 0 {
			return nil, nothing
		}
		name := names[min(len(args), len(names)-1)]
		if len(args) >= len(names) && !strings.HasSuffix(name, "…") {
			return nil, nothing
		}
		switch name = strings.Trim(strings.TrimSuffix(name, "…"), "[]"); {
		case name == "ID" && cmd.Name() == "intercept":
			// Only the running capture knows the numbers of held frames.
			return nil, nothing
		case name == "ID":
			return exchangesOf(ctx, args), nothing
		case name == "METHOD":
			return methods(ctx, cmd, args, prefix)
		case strings.Contains(name, "F.uwc"), name == "A", name == "B", strings.Contains(name, "FRAME"):
			return address(ctx, cmd, args, prefix)
		case name == "DIR":
			return folders(ctx, cmd, args, prefix)
		}
		return nil, files
	}
}
