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
	"unwire/decode/conversation"
	"unwire/schema"
	"unwire/schema/align"
	"unwire/schema/check"
	"unwire/schema/compare"
	"unwire/schema/extract"
	"unwire/schema/infer"
	"unwire/schema/interrupt"
	"unwire/schema/update"
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
		list = append(list, f.stamped(src))
	}
	return list, nil
}

// stamped is a source with what the flags say of it.
func (f updateFlags) stamped(src *update.Source) update.Source {
	src.Version, src.Date = f.version, f.date
	if f.name != "" {
		src.Name = f.name
	}
	return *src
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
	if isAligned(s) {
		return &update.Source{Name: "traffic", Certainty: "inferred", Schema: s, Guessed: true, Spelled: true}, nil
	}
	return &update.Source{Name: "definitions", Certainty: "reported", Schema: s, Complete: !f.partial}, nil
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
	k := check.NewChecker(have, check.CheckOptions{})
	methods := infer.NewEvidence()
	file := parseAddress(name).File
	err := eachExchange(ctx, name, func(ex *decode.Exchange, piece bool) error {
		if piece {
			conversation.DropJoined(ex)
		} else {
			a.remark(ex)
			calls.Add(file, ex)
		}
		k.Add(ex)
		if have.Method(ex.Service, ex.RPC) == nil {
			if err := methods.AddExchange(ex); err != nil {
				a.say("unwire: %s#%d: %v", name, ex.ID, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	methods.Merge(k.Unknown())
	src, err := inferredSource(methods)
	if err != nil {
		return nil, err
	}
	for _, c := range k.Report().Contradicted {
		element := c.Message
		if c.Name != "" {
			element += "." + c.Name
		}
		change := update.Change{Op: update.Conflict, Element: element, Kind: compare.FieldElement, Number: c.Number, Source: src.Name, Note: c.Reason}
		if c.Number == 0 {
			change.Kind = compare.MessageElement
		}
		src.Conflicts = append(src.Conflicts, change)
	}
	return src, nil
}

// inferredSource is what evidence comes to. Roots that are no method's are
// messages by their full names.
func inferredSource(ev *infer.Evidence) (*update.Source, error) {
	in, err := infer.Infer(ev, infer.Options{})
	if err != nil {
		return nil, err
	}
	src := &update.Source{Name: "traffic", Certainty: "inferred", Schema: in.Schema, Guessed: true, Known: map[string]string{}}
	for root, full := range in.Roots {
		src.Known[full] = root
	}
	return src, nil
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
		return inferredSource(ev)
	}
	if isReport(data) {
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
