package schemacmd

import (
	"context"
	"errors"
	"os"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/reflected"
	"unwire/cmd/internal/render/schematext"
	"unwire/schema/extract"
	"unwire/schema/update"
	"unwire/schema/update/source"
)

// UpdateSource loads a source of new definitions for schema update: definitions, a capture, evidence,
// client code, or reflect:URL.
func UpdateSource(ctx context.Context, a *app.App, l *source.Loader, input string) (*update.Source, error) {
	l.Profile, l.ReadFile, l.OnExchange = a.Profile(), a.ReadInput, a.Remark
	l.OnRemark = func(r source.Remark) { a.Say("unwire: %s", schematext.SourceRemark(r)) }
	l.WithCapture = func(input string, do func(src captures.Capture, file string, exchange int64, part bool) error) error {
		return withCapture(a, input, func(c *query.Capture, at query.Address) error {
			if err := a.NeedCalls(ctx, c, at, "schema update"); err != nil {
				return err
			}
			return do(c, at.File, at.Exchange, at.Part)
		})
	}

	if reflected.Names(input) {
		s, err := a.LoadSource(ctx, input)
		if err != nil {
			return nil, err
		}
		return l.OfDefinitions(s), nil
	}

	// The input may be an address in a capture, whose file part is not the whole name.
	file := input
	if _, err := os.Stat(input); err != nil {
		file = query.ParseAddress(input).File
	}
	head, err := app.FirstBytes(file)
	if err != nil {
		return nil, err
	}
	src, err := l.Load(ctx, input, head)
	if err == nil {
		return src, nil
	}

	// An unreadable file is a better explanation than an unknown format.
	if src != nil && len(src.Faults) > 0 {
		return nil, faultsError(src.Faults)
	}
	if e, ok := errors.AsType[*source.FormError](err); ok {
		return nil, app.Fail(app.ExitInput, err, formHint(e))
	}
	return nil, err
}

// formHint returns a hint for a file whose content is not in the expected format.
func formHint(e *source.FormError) string {
	switch {
	case e.Form == source.Findings:
		return "'unwire schema infer --evidence FILE', 'unwire align --json' and 'unwire probe --json' write such files"
	case e.Form == source.Joins:
		return "'unwire align --json' writes such files"
	case errors.Is(e, extract.ErrNothing):
		return "--from needs .proto files, a descriptor set, a capture, an evidence file, the JSON output of 'unwire align' or 'unwire probe', or code in which 'unwire schema extract' finds definitions"
	}
	return ""
}
