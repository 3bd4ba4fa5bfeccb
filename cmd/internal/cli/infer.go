package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/schema"
)

func (a *app) schemaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Infer .proto files from traffic or extract them from code, check traffic against them, compare and search them",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fail(exitUsage, fmt.Errorf("%s: unknown command %q", cmd.CommandPath(), args[0]),
					fmt.Sprintf("see '%s --help'", cmd.CommandPath()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.inferCommand(), a.schemaExtractCommand(), a.checkCommand(), a.updateCommand(), a.matchCommand())
	cmd.AddCommand(a.schemaDiffCommand(), a.schemaPrintCommand(), a.schemaLsCommand(), a.schemaFindCommand(), a.schemaRefsCommand())
	return cmd
}

type inferFlags struct {
	raw                      bool
	pkg, root, out, evidence string
}

func (a *app) inferCommand() *cobra.Command {
	var f inferFlags
	cmd := &cobra.Command{
		Use:   "infer INPUT…",
		Short: "Write the .proto that the traffic must have",
		Long: `infer reads captures and writes the definitions that explain every message in
them: one file a package, as the methods' paths name it. With --raw each INPUT
is a file that holds one serialized message, all of one type; @LIST reads the
names of the files from LIST, one a line.

What cannot be known is not claimed: a field without a name is field_N, and the
comment of each field says how often it was seen and how sure its type is.`,
		Example: `  unwire schema infer -o inferred/ F.uwc
  unwire schema infer --raw --package demo.v1 --root Event -o event.proto @files.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fail(exitUsage, errors.New("unwire schema infer: missing argument INPUT"), "usage: "+cmd.UseLine())
			}
			return a.infer(cmd.Context(), f, args)
		},
	}
	cmd.Flags().BoolVar(&f.raw, "raw", false, "inputs are files of one serialized message each")
	cmd.Flags().StringVar(&f.pkg, "package", "", "package of everything inferred (default: the methods' own)")
	cmd.Flags().StringVar(&f.root, "root", "", "name of the root message of --raw (default Root)")
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "file that ends in .proto, or folder (default: stdout)")
	cmd.Flags().StringVar(&f.evidence, "evidence", "", "JSON file for how sure each field is")
	return cmd
}

// defaultRoot is the root message of --raw where it is given no name.
const defaultRoot = "Root"

func (a *app) infer(ctx context.Context, f inferFlags, inputs []string) error {
	if f.root != "" && !f.raw {
		return usagef("--root names the message of --raw: methods name their own")
	}
	ev := schema.NewEvidence()
	opts := schema.Options{Package: f.pkg}
	var err error
	if f.raw {
		root := f.root
		if root == "" {
			root = defaultRoot
		}
		if !protoreflect.Name(root).IsValid() {
			return usagef("--root %s: no message can have that name", root)
		}
		err = a.addRaw(ev, root, inputs)
	} else {
		err = a.addCaptures(ctx, ev, inputs)
	}
	if err != nil {
		return err
	}
	in, err := schema.Infer(ev, opts)
	if err != nil {
		return err
	}
	if len(in.Files) == 0 {
		return fail(exitInput, errors.New("no protobuf message of an RPC in the input"), "'unwire ls F.uwc' shows each exchange's codec")
	}
	if f.evidence != "" {
		if err := wholeFile(f.evidence, forAll, in.WriteEvidence); err != nil {
			return err
		}
	}
	if in.Truncated {
		a.say("unwire: some fields were left out: there were too many")
	}
	return a.writeInferred(in, f.out)
}

// addRaw enters files that hold one message each. What is no message is said
// and left out, unless nothing else is there.
func (a *app) addRaw(ev *schema.Evidence, root string, inputs []string) error {
	names, err := a.expandLists(inputs)
	if err != nil {
		return err
	}
	added := 0
	for _, name := range names {
		data, err := a.readInput(name)
		if err != nil {
			return err
		}
		if err := ev.Add(root, data); err != nil {
			a.say("unwire: left out: %s: %v", inputName(name), err)
			continue
		}
		added++
	}
	if added == 0 {
		return fail(exitInput, errors.New("none of the files is a serialized message"), "")
	}
	return nil
}

// expandLists replaces @LIST by the file names in it; @- is stdin.
func (a *app) expandLists(inputs []string) ([]string, error) {
	var names []string
	for _, in := range inputs {
		list, ok := strings.CutPrefix(in, "@")
		if !ok {
			names = append(names, in)
			continue
		}
		data, err := a.readInput(list)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimRight(line, "\r\n"); line != "" {
				names = append(names, line)
			}
		}
	}
	return names, nil
}

// addCaptures enters every exchange of captures.
func (a *app) addCaptures(ctx context.Context, ev *schema.Evidence, inputs []string) error {
	for _, name := range inputs {
		err := eachExchange(ctx, name, func(ex *decode.Exchange, piece bool) error {
			if !piece {
				a.remark(ex) // of a conversation, with what its pieces have to say
			}
			if err := ev.AddExchange(ex); err != nil {
				a.say("unwire: %s#%d: %v", name, ex.ID, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// remark says what of an exchange could not be decoded, and is not read.
func (a *app) remark(ex *decode.Exchange) {
	if ex.Err != nil {
		a.say("unwire: %s", term.CleanText(ex.Err.Error()))
	}
}

// writeInferred writes the definitions to a file, a folder, or stdout.
func (a *app) writeInferred(in *schema.Inferred, out string) error {
	paths := slices.Sorted(maps.Keys(in.Files))
	switch {
	case out == "" || out == "-":
		for i, p := range paths {
			if len(paths) > 1 {
				fmt.Fprintf(a.out, "%s// ---- %s\n", strings.Repeat("\n", min(i, 1)), p)
			}
			if _, err := a.out.Write([]byte(in.Files[p])); err != nil {
				return err
			}
		}
		return nil
	case strings.HasSuffix(out, ".proto"):
		text, err := in.Text()
		if err != nil {
			return fail(exitUsage, err, "give a folder to -o, or put all into one package with --package P")
		}
		return wholeFile(out, forAll, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	}
	for _, p := range paths {
		file := filepath.Join(out, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return err
		}
		if err := wholeFile(file, forAll, func(w io.Writer) error { _, err := io.WriteString(w, in.Files[p]); return err }); err != nil {
			return err
		}
		a.say("%s", file)
	}
	return nil
}
