package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

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
func (a *app) updateSources(ctx context.Context, have *schema.Schema, f updateFlags, calls *align.Calls) ([]update.Source, error) {
	var list []update.Source
	for _, name := range f.from {
		src, err := a.updateSource(ctx, have, name, f, calls)
		if err != nil {
			return nil, err
		}
		f.complete(src)
		list = append(list, *src)
	}
	return list, nil
}

// complete enters in a source what the flags say of it.
func (f updateFlags) complete(src *update.Source) {
	src.Version, src.Date = f.version, f.date
	if f.name != "" {
		src.Name = f.name
	}
}

// updateSource loads one source.
func (a *app) updateSource(ctx context.Context, have *schema.Schema, name string, f updateFlags, calls *align.Calls) (*update.Source, error) {
	file := name
	if _, err := os.Stat(name); err != nil {
		file = parseAddress(name).File
	}
	head, err := firstBytes(file)
	if err != nil {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte("SQLite format 3")):
		return a.trafficSource(ctx, have, name, calls)
	case bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")):
		return a.findingsSource(have, name)
	}
	s, err := schema.LoadDefinitions(ctx, name)
	if errors.Is(err, schema.ErrNoSource) || errors.Is(err, schema.ErrNoFiles) {
		return a.extractedSource(ctx, name, f)
	}
	if err != nil {
		return nil, err
	}
	return source.FromDefinitions(s, f.partial), nil
}

// firstBytes is the beginning of a file; a folder has none.
func firstBytes(name string) ([]byte, error) {
	if info, err := os.Stat(name); err != nil || info.IsDir() {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 64))
}

// trafficSource is what captures have that the definitions lack.
func (a *app) trafficSource(ctx context.Context, have *schema.Schema, name string, calls *align.Calls) (*update.Source, error) {
	addr := parseAddress(name)
	store, err := openCapture(addr.File)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	t := source.NewTraffic(have, proto.Profile())
	t.OnExchange = func(ex *decode.Exchange) {
		a.remark(ex)
		calls.Add(addr.File, ex)
	}
	t.OnRejected = func(exchange int64, err error) { a.say("unwire: %s#%d: %v", name, exchange, err) }
	if err := t.AddCapture(ctx, store, addr.Exchange, addr.Part); err != nil {
		return nil, err
	}
	return t.Source()
}

// findingsSource reads a probe's result, evidence of either form, or what align
// joined.
func (a *app) findingsSource(have *schema.Schema, name string) (*update.Source, error) {
	data, err := a.readInput(name)
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
		return a.reportSource(have, name, data)
	}
	src, err := update.ParseFindings(data, have)
	if errors.Is(err, update.ErrNoFindings) {
		return nil, fail(exitInput, fmt.Errorf("%s: %w", name, err), "'unwire schema infer --evidence FILE', 'unwire align --json' and 'unwire probe --json' write such files")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, left := range src.Left {
		a.say("unwire: %s: left out: %s", name, term.CleanText(left))
	}
	return src, nil
}

// reportSource reads what align wrote; have may be nil.
func (a *app) reportSource(have *schema.Schema, name string, data []byte) (*update.Source, error) {
	r, err := align.ParseReport(data)
	if err != nil {
		return nil, fail(exitInput, fmt.Errorf("%s: %w", name, err), "'unwire align --json' writes such files")
	}
	if have != nil && !slices.ContainsFunc(r.Joins, func(j align.Join) bool { return have.Message(j.Message) != nil }) {
		a.say("unwire: %s: none of its messages is in the files; 'unwire align --proto DIR' calls them as DIR does", name)
	}
	return source.FromJoins(r)
}

// extractedSource is what shipped code holds.
func (a *app) extractedSource(ctx context.Context, name string, f updateFlags) (*update.Source, error) {
	c := extract.NewCollector(name, extract.Formats())
	if err := c.AddPath(ctx, name); err != nil {
		return nil, fail(exitInput, err, "")
	}
	found, err := c.Source(ctx)
	if err != nil {
		return nil, err
	}
	set, err := extract.Merge(ctx, found)
	if err != nil {
		return nil, fail(exitInput, fmt.Errorf("%s: %w", name, err), "")
	}
	if n := set.Count(); n.Messages+n.Enums+n.Services == 0 {
		if err := notRead(c.Faults()); err != nil {
			return nil, err
		}
		return nil, fail(exitInput, fmt.Errorf("%s: %w", name, extract.ErrNothing),
			"a source is definitions, a descriptor set, a capture, evidence, a probe's JSON, or code that 'unwire schema extract' reads")
	}
	for _, u := range slices.Concat(found.Unresolved, set.Unresolved) {
		a.say("unwire: %s: %s: %s", u.Place, u.Element, u.Reason)
	}
	s, err := interrupt.Run(ctx, func() (*schema.Schema, error) { return schema.FromDescriptorSet(set.DescriptorSet()) })
	if err != nil {
		return nil, err
	}
	// What is in a file that was not read is not gone.
	complete := !f.partial && len(c.Unread()) == 0
	return &update.Source{Name: "extraction", Certainty: "reported", Schema: s, Complete: complete, Fault: notRead(c.Faults())}, nil
}
