// Package es probes servers whose parser is protobuf-es, versions 1 and 2.
//
// A message is laid out so that the parser stops at a canary: an illegal tag whose number the error
// message repeats. Which canary it stops at shows how it read the value before. Probe finds the
// fields of messages in this way, and Verify checks a definition.
//
// The search goes from the highest field number down, with a payload of canaries for each batch of
// numbers and a lookahead at the candidates after a match. A control asks about a number that
// cannot exist. Further requests find which fields are groups, the kinds of a map's key and value,
// whether a field is repeated, and whether it is a message: groups nested to the parser's depth
// limit are too deep inside a message. The path to a nested message is tested before its fields.
// Truncated JSON makes the server name the request's type.
//
// Verify puts the expectations of a whole definition into one payload, and then isolates those that
// the parser refuses. Only package oracle calls this package.
//
// Source: replay/probe/README.md#protobuf-es-canaries
package es

import (
	"context"
	"slices"

	"unwire/replay/probe"
)

// Probe finds the fields of the messages that o selects, and of the messages nested in them, and adds
// them to res.
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
	// no message could be probed
	return s.askType(ctx, res)
}

// askType determines, once, the full name of the request's type. The error message also reveals the
// version of protobuf-es.
func (s *server) askType(ctx context.Context, res *probe.Result) error {
	if s.typeAsked || !s.options.Type {
		return nil
	}
	s.typeAsked = true
	err := requestType(ctx, s.Client, res)
	s.levelsUncounted = s.levelsUncounted || res.RequestType != "" && res.Runtime == probe.ES1
	return err
}

// conclude sends further requests to determine what is still unknown about the found fields.
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
	// protobuf-es 1 does not validate UTF-8.
	if m.server.options.Refine && res.Runtime != probe.ES1 {
		return m.refine(ctx)
	}
	return nil
}

// below returns the messages nested in this message, including groups and map entries, to be probed
// next.
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
