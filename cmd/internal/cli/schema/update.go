package schemacmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render/schematext"
	"unwire/cmd/internal/term"
	"unwire/schema"
	"unwire/schema/align"
	"unwire/schema/interrupt"
	"unwire/schema/update"
	"unwire/schema/update/source"
)

type UpdateFlags struct {
	dir, version, date, name string
	from                     []string
	write, json, Partial     bool
	takeNames, takeTypes     bool
}

func updateCommand(a *app.App) *cobra.Command {
	var f UpdateFlags
	cmd := &cobra.Command{
		Use:   "update --proto DIR --from SOURCE…",
		Short: "Splice what a source says into hand-written .proto files, and change nothing else of them",
		Long: `update brings the .proto files below DIR up to date. Without --write it prints the
change as a unified diff. New fields, messages, enum values, methods and services
are spliced in at their place in each file's own formatting; names, comments, order,
options and blank lines stay byte for byte.

SOURCE is a folder of .proto files, a .proto file, a descriptor set, code that
'schema extract' reads, captures, the evidence of 'schema infer', what 'align'
writes, or the JSON of a probe. Calls that the captures have in both codecs give
names. Placeholders (field_7, unknown7, Unknown3) get real names. A real name is
replaced only with --take-names, and a type that the same bytes fit only with
--take-types or where a comment says that it is a guess; what is to be decided first
is listed as a conflict, and left out.

What definitions have no more is marked "last seen", never removed; --partial says
that a source is not all there is. Traffic and probes never are. DIR/evidence.jsonl
tells where each new element comes from. The exit status is 1 with conflicts.`,
		Example: `  unwire schema update --proto proto/ --from F.uwc
  unwire schema update --proto proto/ --from proto.uwc json.uwc
  unwire schema update --proto proto/ --from app/dist/main.js --version 3.1.2 --write`,
		Args: func(_ *cobra.Command, args []string) error { f.from = append(f.from, args...); return nil },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.dir == "" || len(f.from) == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire schema update: --proto DIR and --from SOURCE are needed"), "usage: "+cmd.UseLine())
			}
			return runUpdate(cmd.Context(), a, f)
		},
	}
	cmd.Flags().StringVar(&f.dir, "proto", "", "folder of the .proto files to update")
	cmd.Flags().StringArrayVar(&f.from, "from", nil, "what to update from; may be repeated, later ones as arguments")
	cmd.Flags().BoolVar(&f.write, "write", false, "write the files, all or none")
	cmd.Flags().BoolVar(&f.json, "json", false, "a JSON object a change")
	cmd.Flags().BoolVar(&f.Partial, "partial", false, "what the definitions do not have is not gone")
	cmd.Flags().BoolVar(&f.takeNames, "take-names", false, "let a source's names replace others")
	cmd.Flags().BoolVar(&f.takeTypes, "take-types", false, "let a source's types replace others that the same bytes fit")
	cmd.Flags().StringVar(&f.version, "version", "", "version of the client that the sources are of")
	cmd.Flags().StringVar(&f.date, "date", "", "date for the evidence (default: today)")
	cmd.Flags().StringVar(&f.name, "source", "", "what the evidence calls the sources (default: definitions, extraction, traffic, probe)")
	return cmd
}

func runUpdate(ctx context.Context, a *app.App, f UpdateFlags) error {
	if f.date == "" {
		f.date = time.Now().UTC().Format(time.DateOnly)
	}
	if _, err := time.Parse(time.DateOnly, f.date); err != nil {
		return app.Usagef("--date is a day such as 2026-03-01, not %q", f.date)
	}
	texts, err := schema.ReadTexts(os.DirFS(f.dir))
	if err != nil {
		return fmt.Errorf("%w (below %s)", err, f.dir)
	}
	have, err := interrupt.Run(ctx, func() (*schema.Schema, error) { return schema.FromTexts(texts) })
	if err != nil {
		return fmt.Errorf("%w (below %s)", err, f.dir)
	}
	evidence, err := os.ReadFile(filepath.Join(f.dir, update.EvidenceFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var calls align.Calls
	sources, err := updateSources(ctx, a, have, f, &calls)
	if err != nil {
		return err
	}
	r, err := interrupt.Run(ctx, func() (*update.Result, error) {
		o := update.Options{TakeNames: f.takeNames, TakeTypes: f.takeTypes}
		r, err := update.Run(texts, string(evidence), sources, o)
		if err != nil {
			return nil, err
		}
		return source.NameByCalls(r, texts, &calls, f.complete, o)
	})
	if err != nil {
		return err
	}
	if r.Evidence != string(evidence) {
		r.Files = append(r.Files, update.File{Name: update.EvidenceFile, Before: string(evidence), After: r.Evidence, New: len(evidence) == 0})
	}
	if f.write {
		if err := writeFiles(f.dir, r.Files); err != nil {
			return err
		}
	}
	if err := printUpdate(a, r, f); err != nil {
		return err
	}
	for _, src := range sources {
		if src.Fault != nil {
			return src.Fault
		}
	}
	if len(r.Conflicts()) > 0 {
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}

func printUpdate(a *app.App, r *update.Result, f UpdateFlags) error {
	if f.json {
		for _, c := range r.Changes {
			if err := a.Print(&contract.SchemaUpdate{Change: c}); err != nil {
				return err
			}
		}
	} else if !f.write {
		if err := schematext.UpdateDiff(a.Out, r.Files); err != nil {
			return err
		}
	}
	if !f.json {
		for _, c := range r.Conflicts() {
			a.Say("unwire: conflict: %s", term.CleanText(schematext.Conflict(c)))
		}
	}
	a.Say("%s", schematext.UpdateSummary(r, f.write))
	return nil
}

// writeFiles replaces files below dir, all or none: each is written beside its
// place before any takes it.
func writeFiles(dir string, files []update.File) error {
	var staged []string
	done := func() {
		for _, name := range staged {
			// Those that took their place are gone already.
			os.Remove(name) //nolint:errcheck
		}
	}
	defer done()
	for _, file := range files {
		name := filepath.Join(dir, filepath.FromSlash(file.Name))
		temp, err := stage(name, file.After)
		if err != nil {
			return fmt.Errorf("nothing is written: %w", err)
		}
		staged = append(staged, temp)
	}
	for i, file := range files {
		name := filepath.Join(dir, filepath.FromSlash(file.Name))
		if err := os.Rename(staged[i], name); err != nil {
			for _, back := range files[:i] {
				err = errors.Join(err, restore(filepath.Join(dir, filepath.FromSlash(back.Name)), back))
			}
			return fmt.Errorf("nothing is written: %w", err)
		}
	}
	return nil
}

// stage writes what is to be a file beside it. A file that its owner may not
// write is not replaced.
func stage(name, text string) (temp string, err error) {
	mode := app.ForAll
	if info, err := os.Stat(name); err == nil {
		if mode = info.Mode().Perm(); mode&0o200 == 0 {
			return "", &fs.PathError{Op: "write", Path: name, Err: fs.ErrPermission}
		}
		if real, err := filepath.EvalSymlinks(name); err != nil || real != filepath.Clean(name) && isLink(name) {
			return "", &fs.PathError{Op: "write", Path: name, Err: errors.New("is a symbolic link")}
		}
	} else if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(name), app.PartialPattern(name))
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

func isLink(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

func restore(name string, file update.File) error {
	if file.New {
		return os.Remove(name)
	}
	return os.WriteFile(name, []byte(file.Before), app.ForAll)
}
