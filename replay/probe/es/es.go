// Package es asks servers whose parser is protobuf-es, versions 1 and 2.
//
// A message is laid out so that the parser stumbles over a canary, an illegal tag
// with a number that its error repeats. Which canary it meets says how it read the
// value before it: Probe finds the fields of messages so, and Verify whether a
// definition of them is right.
//
// A search goes from the highest number down, a payload of canaries for each batch of
// numbers, with a lookahead at candidates behind it. A control asks about a number
// that cannot exist. Further requests find which fields are protobuf groups, what the
// key and the value of a map entry are, which label a field has (single or repeated),
// and whether a field is a message: groups nested to the parser's depth limit are too
// deep inside it. The message path is tested before a nested message is asked about.
// JSON that ends early makes the server name the request type. A report enters what
// is known in the result.
//
// Verify puts the claims of a whole definition into one payload, and isolates those
// that the parser refuses. Package oracle alone calls this one.
//
// Source: replay/probe/README.md#protobuf-es-canaries
package es

import (
	"context"
	"slices"

	"unwire/replay/probe"
)

// Probe asks a protobuf-es server about the messages that o asks for and those
// below them.
func Probe(ctx context.Context, c *probe.Client, o *probe.Options, res *probe.Result) error {
	s := newServer(c, o)
	paths, numbers := o.Targets()
	var todo []*message
	for _, path := range paths {
		m := newMessage(s, path, numbers[probe.PathText(path)])
		m.unsure = len(path) > 0
		todo = append(todo, m)
	}

	reached := map[string]*message{}
	for ; len(todo) > 0; todo = todo[1:] {
		m := todo[0]
		if m.unsure {
			ok, err := s.reach(ctx, res, m, reached)
			if err != nil && !res.NoteOracleOff(err) {
				return err
			}
			if !ok {
				continue
			}
		}
		err := m.run(ctx)
		if res.NoteOracleOff(err) {
			continue
		}
		if err == nil {
			err = m.conclude(ctx, res)
		}
		m.report(res)
		if err != nil {
			return err
		}
		if len(m.path)-len(o.Path) < o.Depth && len(o.Questions) == 0 {
			todo = append(todo, m.below()...)
		}
	}
	return s.askType(ctx, res) // no message could be asked
}

// askType asks, once, for the request's type, which tells the version of
// protobuf-es, too.
func (s *server) askType(ctx context.Context, res *probe.Result) error {
	if s.typeAsked || !s.options.Type {
		return nil
	}
	s.typeAsked = true
	err := requestType(ctx, s.Client, res)
	s.levelsUncounted = s.levelsUncounted || res.RequestType != "" && res.Runtime == probe.ES1
	return err
}

// conclude asks what the fields that were found leave open.
func (m *message) conclude(ctx context.Context, res *probe.Result) error {
	if err := m.server.askType(ctx, res); err != nil {
		return err
	}
	if err := m.measure(ctx); err != nil {
		return err
	}
	if err := m.labels(ctx); err != nil {
		return err
	}
	// which does not look at text
	if m.server.options.Refine && res.Runtime != probe.ES1 {
		return m.refine(ctx)
	}
	return nil
}

// below are the messages in a message: groups and the entries of maps, too.
func (m *message) below() (list []*message) {
	for _, n := range m.order() {
		f := m.found[n]
		if f.slot != slotMessage && f.slot != slotMap && !f.group {
			continue
		}
		in := newMessage(m.server, append(slices.Clone(m.path), n), m.server.options.Numbers)
		in.groups, in.entry = slices.Clone(m.groups), f.slot == slotMap
		if f.group {
			in.groups = append(in.groups, len(m.path))
		}
		list = append(list, in)
	}
	return list
}
