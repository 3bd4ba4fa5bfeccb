package es

import (
	"context"
	"slices"

	"unwire/replay/probe"
)

// ProbeES asks a protobuf-es server about the messages that o asks for and those
// below them.
func ProbeES(ctx context.Context, c *probe.Client, o *probe.Options, res *probe.Result) error {
	s := newESServer(c, o)
	paths, numbers := o.Targets()
	var todo []*esMessage
	for _, path := range paths {
		m := newESMessage(s, path, numbers[probe.PathText(path)])
		m.unsure = len(path) > 0
		todo = append(todo, m)
	}

	reached := map[string]*esMessage{}
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
func (s *esServer) askType(ctx context.Context, res *probe.Result) error {
	if s.typeAsked || !s.options.Type {
		return nil
	}
	s.typeAsked = true
	err := requestType(ctx, s.Client, res)
	s.levelsUncounted = s.levelsUncounted || res.RequestType != "" && res.Runtime == probe.ES1
	return err
}

// conclude asks what the fields that were found leave open.
func (m *esMessage) conclude(ctx context.Context, res *probe.Result) error {
	if err := m.server.askType(ctx, res); err != nil {
		return err
	}
	if err := m.measure(ctx); err != nil {
		return err
	}
	if err := m.labels(ctx); err != nil {
		return err
	}
	if m.server.options.Refine && res.Runtime != probe.ES1 { // which does not look at text
		return m.refine(ctx)
	}
	return nil
}

// below are the messages in a message: groups and the entries of maps, too.
func (m *esMessage) below() (list []*esMessage) {
	for _, n := range m.order() {
		f := m.found[n]
		if f.slot != slotMessage && f.slot != slotMap && !f.group {
			continue
		}
		in := newESMessage(m.server, append(slices.Clone(m.path), n), m.server.options.Numbers)
		in.groups, in.entry = slices.Clone(m.groups), f.slot == slotMap
		if f.group {
			in.groups = append(in.groups, len(m.path))
		}
		list = append(list, in)
	}
	return list
}
