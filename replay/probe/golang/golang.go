// Package golang probes servers whose parser is protobuf-go, behind connect-go or grpc-go. Probe
// finds the fields of messages; Verify checks the fields of a definition. Both send messages with a
// probe.Client and record the results in a type of package probe. Only package oracle calls this
// package.
//
// protobuf-go refuses invalid UTF-8 in strings, malformed messages and truncated packed lists; it
// skips everything else. A test message has a value for each of many field numbers, and ends with
// something that is refused with a different error. Which of the two errors comes back shows
// whether one of the numbers is of the tested kind; bisection finds which.
//
// message.go has the state of one message and the tests. Verify tests strings first: a refusal also
// confirms the messages that contain the string.
//
// Source: replay/probe/README.md#protobuf-go-invalid-utf-8-as-the-oracle
package golang

import (
	"context"
	"fmt"
	"slices"

	"unwire/replay/probe"
)

// A prober probes the messages in a Go server's request one after the other.
type prober struct {
	// server is the probed server.
	server *server

	// o are the options of the probe.
	o *probe.Options

	// res is the result so far.
	res *probe.Result

	// poison is appended to a request so that the parser rejects it: a string field with invalid UTF-8;
	// nil if no string field is known.
	poison []byte

	// unpoisoned are the messages that were probed before poison was known.
	unpoisoned []*message
}

// Probe finds the fields of the messages that o selects, and of the messages nested in them, and adds
// them to res.
func Probe(ctx context.Context, c *probe.Client, o *probe.Options, res *probe.Result) error {
	r := &prober{server: newServer(c), o: o, res: res}
	paths, numbers := o.Targets()
	if err := r.findPoison(ctx, len(paths[0]) > 0 || len(o.Questions) > 0); err != nil {
		return err
	}

	// The given paths come first, then the messages found below them.
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
	r.server.noteEnd(res, r.poison)
	res.Note("protobuf-go reports no parse errors for bytes fields and for numbers that are not repeated, so unwire can find such fields only by their names, in JSON requests (--names)")
	return nil
}

// ask probes one message and adds its fields to the result. below are the paths of nested messages that
// are to be probed next.
func (r *prober) ask(ctx context.Context, m *message) (below [][]int32, err error) {
	err = m.run(ctx)
	if r.res.NoteOracleOff(err) {
		return nil, nil
	}
	if m.poison == nil && r.server.end == nil && err == nil {
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

// askAgain probes again the messages that were probed before poison was known, and reports them.
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

// findPoison looks for a string field that can end requests, because the server rejects invalid UTF-8
// in it: among the fields that are probably strings and, if wanted is set, among all fields.
func (r *prober) findPoison(ctx context.Context, wanted bool) error {
	root := &message{server: r.server}
	err := root.findPoison(ctx, r.o.Texts)
	if err == nil && root.poison == nil && wanted {
		err = root.findPoisonAbove(ctx, r.o.Numbers)
	}
	if r.poison = root.poison; err == nil && r.poison == nil && wanted {
		_, err = r.server.findEnd(ctx)
	}
	return err
}

// reach reports whether a path may lead to a message. As long as there is no way to end requests, it
// can only exclude that a field on the path is a string.
func (r *prober) reach(ctx context.Context, path []int32) (bool, error) {
	for i, n := range path {
		m := &message{server: r.server, path: path[:i], poison: r.poison}
		tests := fieldTests()
		text, _, err := m.ask(ctx, tests[0], []int32{n})
		if err != nil {
			return false, err
		}
		message := r.poison == nil && r.server.end == nil
		if !text && !message {
			if message, _, err = m.ask(ctx, tests[1], []int32{n}); err != nil {
				return false, err
			}
		}
		if text || !message {
			r.res.Note(fmt.Sprintf("the server does not parse field %s as a message, so unwire tested no fields in it", probe.PathText(path[:i+1])))
			return false, nil
		}
	}
	return true, nil
}
