package schemacmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/proto"
	"unwire/schema"
	"unwire/schema/align"
	"unwire/schema/extract"
	"unwire/schema/infer"
	"unwire/schema/interrupt"
	"unwire/schema/update"
	"unwire/schema/update/source"
)

// updateSources loads what an update is made from; calls gets those of captures,
// as the two codecs of a call may stand in two.
func updateSources(ctx context.Context, a *app.App, have *schema.Schema, f UpdateFlags, calls *align.Calls) ([]update.Source, error) {
	var list []update.Source
	for _, name := range f.from {
		src, err := UpdateSource(ctx, a, have, name, f, calls)
		if err != nil {
			return nil, err
		}
		f.complete(src)
		list = append(list, *src)
	}
	return list, nil
}

// complete enters in a source what the flags say of it.
func (f UpdateFlags) complete(src *update.Source) {
	src.Version, src.Date = f.version, f.date
	if f.name != "" {
		src.Name = f.name
	}
}

// UpdateSource loads one source.
func UpdateSource(ctx context.Context, a *app.App, have *schema.Schema, name string, f UpdateFlags, calls *align.Calls) (*update.Source, error) {
	file := name
	if _, err := os.Stat(name); err != nil {
		file = query.ParseAddress(name).File
	}
	head, err := app.FirstBytes(file)
	if err != nil {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte("SQLite format 3")):
		return trafficSource(ctx, a, have, name, calls)
	case bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")):
		return findingsSource(a, have, name)
	}
	s, err := schema.LoadDefinitions(ctx, name)
	if errors.Is(err, schema.ErrNoSource) || errors.Is(err, schema.ErrNoFiles) {
		return extractedSource(ctx, a, name, f)
	}
	if err != nil {
		return nil, err
	}
	return source.FromDefinitions(s, f.Partial), nil
}

// trafficSource is what captures have that the definitions lack.
func trafficSource(ctx context.Context, a *app.App, have *schema.Schema, name string, calls *align.Calls) (*update.Source, error) {
	addr := query.ParseAddress(name)
	store, err := app.OpenCapture(addr.File)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	t := source.NewTraffic(have, proto.Profile())
	t.OnExchange = func(ex *decode.Exchange) {
		a.Remark(ex)
		calls.Add(addr.File, ex)
	}
	t.OnRejected = func(exchange int64, err error) { a.Say("unwire: %s#%d: %v", name, exchange, err) }
	if err := t.AddCapture(ctx, store, addr.Exchange, addr.Part); err != nil {
		return nil, err
	}
	return t.Source()
}

// findingsSource reads a probe's result, evidence of either form, or what align
// joined.
func findingsSource(a *app.App, have *schema.Schema, name string) (*update.Source, error) {
	data, err := a.ReadInput(name)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(data[:min(len(data), 4096)], []byte(`"unwire_evidence"`)) {
		ev, err := infer.ReadEvidence(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		return source.FromEvidence(ev, proto.Profile())
	}
	if align.IsReport(data) {
		return reportSource(a, have, name, data)
	}
	src, err := update.ParseFindings(data, have)
	if errors.Is(err, update.ErrNoFindings) {
		return nil, app.Fail(app.ExitInput, fmt.Errorf("%s: %w", name, err), "'unwire schema infer --evidence FILE', 'unwire align --json' and 'unwire probe --json' write such files")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, left := range src.Left {
		a.Say("unwire: %s: left out: %s", name, term.CleanText(left))
	}
	return src, nil
}

// reportSource reads what align wrote; have may be nil.
func reportSource(a *app.App, have *schema.Schema, name string, data []byte) (*update.Source, error) {
	r, err := align.ParseReport(data)
	if err != nil {
		return nil, app.Fail(app.ExitInput, fmt.Errorf("%s: %w", name, err), "'unwire align --json' writes such files")
	}
	if have != nil && !slices.ContainsFunc(r.Joins, func(j align.Join) bool { return have.Message(j.Message) != nil }) {
		a.Say("unwire: %s: none of its messages is in the files; 'unwire align --proto DIR' calls them as DIR does", name)
	}
	return source.FromJoins(r)
}

// extractedSource is what shipped code holds.
func extractedSource(ctx context.Context, a *app.App, name string, f UpdateFlags) (*update.Source, error) {
	found, err := extract.Read(ctx, name, nil)
	if err != nil {
		return nil, app.Fail(app.ExitInput, err, "")
	}
	set, err := extract.Merge(ctx, found)
	if err != nil {
		return nil, app.Fail(app.ExitInput, fmt.Errorf("%s: %w", name, err), "")
	}
	if n := set.Count(); n.Messages+n.Enums+n.Services == 0 {
		if err := notRead(found.Faults); err != nil {
			return nil, err
		}
		return nil, app.Fail(app.ExitInput, fmt.Errorf("%s: %w", name, extract.ErrNothing),
			"a source is definitions, a descriptor set, a capture, evidence, a probe's JSON, or code that 'unwire schema extract' reads")
	}
	for _, u := range slices.Concat(found.Unresolved, set.Unresolved) {
		a.Say("unwire: %s: %s: %s", u.Place, u.Element, u.Reason)
	}
	s, err := interrupt.Run(ctx, func() (*schema.Schema, error) { return schema.FromDescriptorSet(set.DescriptorSet()) })
	if err != nil {
		return nil, err
	}
	// What is in a file that was not read is not gone.
	complete := !f.Partial && len(found.Unread) == 0
	return &update.Source{Name: "extraction", Certainty: "reported", Schema: s, Complete: complete, Fault: notRead(found.Faults)}, nil
}
