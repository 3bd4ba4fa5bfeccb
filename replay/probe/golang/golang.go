// Package golang asks servers whose parser is protobuf-go, behind connect-go or
// grpc-go. Probe finds the fields of messages, Verify checks the fields of a
// definition. Both take a probe.Client, which sends messages, and enter what the
// answers show in a result of package probe. Package oracle alone calls them.
//
// That parser refuses invalid UTF-8 in strings, malformed messages, and packed lists
// that are truncated, and skips everything else. A test message has a value for each
// of many numbers, and ends with something that is refused in other words: which of
// the two is refused shows whether one of the numbers is of the kind, and halving the
// numbers shows which.
//
// What is known of a message, and the tests of its fields, are in file message.
// Verify asks for strings first: one that is refused confirms the messages that lead
// to it, too.
//
// Source: replay/probe/README.md#protobuf-go-invalid-utf-8-as-the-oracle
package golang

import (
	"context"
	"fmt"
	"slices"

	"unwire/replay/probe"
)

// A prober asks a Go server about messages, one after the other.
type prober struct {
	server *server
	o      *probe.Options
	res    *probe.Result

	// poison is what ends a request: text that is none; nil: none is known.
	poison []byte

	// unpoisoned are the messages that were asked about without it.
	unpoisoned []*message
}

// Probe asks a Go server about the messages that o asks for and those below them.
func Probe(ctx context.Context, c *probe.Client, o *probe.Options, res *probe.Result) error {
	r := &prober{server: newServer(c), o: o, res: res}
	paths, numbers := o.Targets()
	if err := r.findPoison(ctx, len(paths[0]) > 0 || len(o.Questions) > 0); err != nil {
		return err
	}

	// The paths that are given come first, then those of the messages below them.
	for given := len(paths); len(paths) > 0; given-- {
		m := &message{server: r.server, path: paths[0], poison: r.poison, fields: map[int32]*probe.Field{}}
		paths = paths[1:]
		if given > 0 {
			ok, err := r.reach(ctx, m.path)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
		}
		if m.numbers = numbers[probe.PathText(m.path)]; m.numbers == nil {
			m.numbers = o.Numbers
		}
		below, err := r.ask(ctx, m)
		if err != nil {
			return err
		}
		paths = append(paths, below...)
	}

	if err := r.askAgain(ctx); err != nil {
		return err
	}
	if r.poison == nil {
		res.Note("no text field is known that could end a request: messages and lists cannot be told from what is unknown")
	}
	res.Note("protobuf-go passes over bytes and single numbers of any wire type: only JSON tells of them, by name")
	return nil
}

// ask asks about a message, and returns the paths of those in it that are to be
// asked about, too.
func (r *prober) ask(ctx context.Context, m *message) (below [][]int32, err error) {
	err = m.run(ctx)
	if r.res.NoteOracleOff(err) {
		return nil, nil
	}
	if m.poison == nil && err == nil {
		r.unpoisoned = append(r.unpoisoned, m)
		return nil, nil
	}
	r.poison = m.poison
	m.report(r.res)
	if err != nil || len(m.path)-len(r.o.Path) >= r.o.Depth || len(r.o.Questions) > 0 {
		return nil, err
	}
	for _, n := range m.order() {
		if m.fields[n].Class == probe.Message {
			below = append(below, append(slices.Clone(m.path), n))
		}
	}
	return below, nil
}

// askAgain asks about those messages that were asked about before it was known
// what ends a request, and reports them.
func (r *prober) askAgain(ctx context.Context) error {
	for _, m := range r.unpoisoned {
		m.poison = r.poison
		if m.poison != nil {
			if err := m.run(ctx); r.res.NoteOracleOff(err) {
				continue
			} else if err != nil {
				return err
			}
		}
		m.report(r.res)
	}
	return nil
}

// findPoison looks for text that can end requests: among the fields that should
// be text and, where it is wanted before anything is asked, among all.
func (r *prober) findPoison(ctx context.Context, wanted bool) error {
	root := &message{server: r.server}
	err := root.findPoison(ctx, r.o.Texts)
	if err == nil && root.poison == nil && wanted {
		err = root.findPoisonAbove(ctx, r.o.Numbers)
	}
	r.poison = root.poison
	return err
}

// reach makes sure that a path leads to a message, with what ends a request
// if that is known.
func (r *prober) reach(ctx context.Context, path []int32) (bool, error) {
	for i, n := range path {
		m := &message{server: r.server, path: path[:i], poison: r.poison}
		tests := fieldTests()
		text, _, err := m.ask(ctx, tests[0], []int32{n})
		if err != nil {
			return false, err
		}
		message := r.poison == nil
		if !text && !message {
			if message, _, err = m.ask(ctx, tests[1], []int32{n}); err != nil {
				return false, err
			}
		}
		if text || !message {
			r.res.Note(fmt.Sprintf("%s is no message, as far as the server tells: nothing below it was asked", probe.PathText(path[:i+1])))
			return false, nil
		}
	}
	return true, nil
}
