package probe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// runES asks a protobuf-es server about the message at Options.Path and those
// below it.
func runES(ctx context.Context, c *client, o *Options, res *Result) error {
	var todo []*esMessage
	paths, numbers := o.messages()
	reached := map[string]*esMessage{}
	for _, path := range paths {
		m := newESMessage(c, o, path, numbers[pathText(path)])
		m.unsure = len(path) > 0
		todo = append(todo, m)
	}
	for len(todo) > 0 {
		m := todo[0]
		todo = todo[1:]
		if m.unsure {
			ok, err := reachES(ctx, c, o, res, m, reached)
			if err != nil && !res.offHere(err) {
				return err
			}
			if !ok {
				continue
			}
		}
		err := m.run(ctx)
		if res.offHere(err) {
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
	if err := version(ctx, c, res); err != nil { // no message could be asked
		return err
	}
	return names(ctx, c, o, res)
}

// version asks, once, which version of protobuf-es answers.
func version(ctx context.Context, c *client, res *Result) error {
	if c.versionAsked || !c.o.Type {
		return nil
	}
	c.versionAsked = true
	err := requestType(ctx, c, res)
	c.uncounted = c.uncounted || res.RequestType != "" && res.Runtime == ES1
	return err
}

// conclude asks what the fields that were found leave open.
func (m *esMessage) conclude(ctx context.Context, res *Result) error {
	if err := version(ctx, m.c, res); err != nil {
		return err
	}
	if err := m.measure(ctx); err != nil {
		return err
	}
	if err := m.labels(ctx); err != nil {
		return err
	}
	if m.c.o.Refine && res.Runtime != ES1 { // which does not look at text
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
		in := newESMessage(m.c, m.c.o, append(slices.Clone(m.path), n), m.c.o.Numbers)
		in.groups, in.entry = slices.Clone(m.groups), f.slot == slotMap
		if f.group {
			in.groups = append(in.groups, len(m.path))
		}
		list = append(list, in)
	}
	return list
}

// An esMessage is what is known of one message of a protobuf-es server.
type esMessage struct {
	c       *client
	path    []int32
	groups  []int // places in path of groups
	entry   bool  // it is a map's entry, and the runtime skips nothing in those
	numbers []Range
	hints   map[int32]Hint
	found   map[int32]*esField
	// numbers that could not be told apart from their neighbours
	excluded map[int32]bool
	// one of them, from the highest down, makes the parser stumble without saying where
	suspects []int32
	illegal  bool        // it stumbles over a tag there
	seek     bool        // the next request asks which of them is a group
	assumed  *assumption // what the next request makes sure of
	// numbers at which it stumbles for a reason that is not known
	unknown []int32
	unsure  bool // whether the path leads to a message
	// requests, each of which has its canaries' ids in another order
	asked    int
	complete bool // nothing was left in any batch
}

func newESMessage(c *client, o *Options, path []int32, numbers []Range) *esMessage {
	m := &esMessage{c: c, path: path, numbers: numbers, found: map[int32]*esField{}, excluded: map[int32]bool{}}
	if slices.Equal(path, o.Path) {
		m.hints = o.Hints
	}
	return m
}

// firstMessage is what a protobuf-es server is asked about first: the first
// step of a path, before it is known whether the path leads to a message.
func (o *Options) firstMessage(c *client) *esMessage {
	paths, numbers := o.messages()
	if first := paths[0]; len(first) > 0 {
		return newESMessage(c, o, nil, []Range{{first[0], first[0]}})
	}
	return newESMessage(c, o, nil, numbers[""])
}

type esField struct {
	number int32
	slot   slot
	group  bool
	unsure bool // whether it is a message was not told
	level  bool // what is in its value is read at the level of the field
	// what is in its value is read a level below the field's, which entries of maps are not
	below bool
	text  string // "string" or "bytes", or ""
	// as in Field: of a number of 4 or 8 bytes, or "map" of a message
	label    string
	evidence []string
}

func (m *esMessage) order() []int32 { return slices.Sorted(maps.Keys(m.found)) }

// run finds all fields, from the highest number down: a request a field. What
// was passed is not asked about again.
func (m *esMessage) run(ctx context.Context) error {
	if m.entry {
		return m.runEntry(ctx)
	}
	// the varint that is yet to be told from a message that has itself
	var deep int32
	for high := int32(maxNumber); ; {
		batch := m.fitting(m.batch(high))
		if m.seek {
			m.seek = false
			n, err := m.seekGroup(ctx, batch)
			if err != nil {
				return err
			}
			if n != 0 {
				m.assumed = &assumption{n, high, batch.numbers}
				high = below(m.numbers, n-1)
				continue
			}
		}
		if len(m.suspects) > 1 {
			batch = batch.cut(len(m.suspects) / 2)
		}
		batch = m.ahead(batch)
		if len(batch.numbers) == 0 && batch.last() && deep == 0 && m.assumed == nil && len(m.candidatesForMessage()) == 0 {
			m.complete = true
			return nil // there is nothing left to ask
		}
		payload := m.payload(deep, batch)
		a, err := m.c.ask(ctx, m.at()+": "+batch.about(), payload)
		if err == errSize && len(payload) > m.c.most && len(batch.numbers) > 1 {
			if deep != 0 {
				m.found[deep].unsure = true
				deep = 0
			}
			continue
		}
		if err != nil {
			return err
		}
		high, deep, err = m.learn(ctx, a, batch, high, deep)
		m.asked++
		if err != nil || m.complete {
			return err
		}
	}
}

// passed reports whether a parser met nothing in a batch.
func (m *esMessage) passed(a *answer, b batch) bool {
	index, s, _, ok := m.read(a)
	return ok && s == slotEnd && index == len(b.numbers)
}

// learn enters what an answer tells.
//
// Shape: high is where the next batch begins, deep the varint that is nested
// deeply in it, or 0.
func (m *esMessage) learn(ctx context.Context, a *answer, b batch, from, deep int32) (high, next int32, err error) {
	index, s, illegal, ok := m.read(a)
	varints := m.candidatesForMessage()
	confirmed := index - len(b.numbers) - 1
	if was := m.assumed; was != nil {
		m.assumed = nil
		if a.parser && !gaveUpES(a.message) && (!ok || index == assertion) {
			delete(m.found, was.number)
			delete(m.excluded, was.number)
			m.suspects = was.suspects
			return was.high, 0, nil
		}
	}
	switch {
	case ok && index == controlIndex:
		return 0, 0, oracleOffAt(m.path, a)
	case ok && s != slotEnd && (index < len(b.numbers) || index >= b.base && index-b.base < len(b.looks)):
		m.isVarint(deep)
		if index >= len(b.numbers) {
			l := b.looks[index-b.base]
			m.finds(l.number, l.by, a)
			b.numbers, index = []int32{l.next}, 0
		}
		f := m.finds(b.numbers[index], s, a)
		switch {
		case s != slotVarint || m.hints[f.number].Varint:
		case m.small():
			f.unsure = true
		default:
			next = f.number
		}
		m.clear(b.numbers[:index+1])
		return below(m.numbers, f.number-1), next, nil
	case m.passed(a, b):
		m.isVarint(deep)
		m.c.uncounted = m.c.uncounted || m.measures(deep, b)
		m.complete = b.last()
		m.clear(b.numbers)
		if len(m.suspects) == 1 {
			high := below(m.numbers, m.suspects[0]-1)
			return high, 0, m.identify(ctx, m.suspects[0], a)
		}
		return b.next, 0, nil
	case a.parser && gaveUpES(a.message) && m.measures(deep, b):
		m.c.counted, m.complete = true, true
		return 0, 0, nil
	case ok && confirmed >= 0 && confirmed < len(varints):
		m.isVarint(deep)
		f := m.found[varints[confirmed]]
		f.slot = slotMessage
		m.tell(f, "other fields are read in it than around it")
		return from, 0, nil
	case a.parser && deep != 0 && gaveUpES(a.message):
		m.c.counted = m.c.counted || strings.Contains(a.message, levelsCounted)
		f := m.found[deep]
		f.slot = slotMessage
		m.tell(f, "it can be nested until the parser gives up: "+quote(a.message))
		return from, 0, nil
	case a.parser && deep != 0 && !illegal: // nothing follows for the varint
		m.found[deep].unsure = true
		return from, 0, nil
	case a.parser && len(b.numbers) > 1:
		m.isVarint(deep)
		if err := m.control(ctx); err != nil {
			return 0, 0, err
		}
		m.seek = illegal && len(m.suspects) == 0
		m.suspects, m.illegal = b.numbers, illegal
		return from, 0, nil
	case a.parser && len(b.numbers) == 1:
		m.isVarint(deep)
		m.suspects, m.illegal = b.numbers, illegal
		if err := m.control(ctx); err != nil {
			return 0, 0, err
		}
		return b.next, 0, m.identify(ctx, b.numbers[0], a)
	case a.parser:
		if err := m.control(ctx); err != nil {
			return 0, 0, err
		}
		return 0, 0, stop("the parser stumbles over what has no field in it")
	}
	return 0, 0, stop("the answer to request %d tells nothing of the parser: %s", m.c.requests, a.brief())
}

// finds enters a field at whose canary the parser stumbled.
func (m *esMessage) finds(n int32, s slot, a *answer) *esField {
	f := &esField{number: n, slot: s}
	m.tell(f, quote(a.message))
	m.found[n] = f
	m.c.showsMaps = m.c.showsMaps || s == slotMap
	return f
}

// How protobuf-es 2 says that it gives up: where, and in an unknown group.
const (
	levelsCounted  = "maximum recursion depth of 100 "
	levelsExceeded = "maximum recursion depth reached"
)

// gaveUpES reports whether a parser went down too far: protobuf-es 2 counts
// levels, protobuf-es 1 runs out of stack.
func gaveUpES(message string) bool {
	s := strings.ToLower(message)
	return strings.Contains(s, "recursion") || strings.Contains(s, "call stack")
}

func (m *esMessage) tell(f *esField, what string) {
	f.evidence = append(f.evidence, fmt.Sprintf("request %d: %s", m.c.requests, what))
}

// isVarint enters that a varint's deep nesting was read without going down.
func (m *esMessage) isVarint(n int32) {
	if f := m.found[n]; f != nil {
		m.tell(f, "it cannot be nested deeply")
	}
}
