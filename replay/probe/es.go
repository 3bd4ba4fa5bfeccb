package probe

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// runES asks a protobuf-es server about the message at Options.Path and those
// below it.
func runES(ctx context.Context, c *client, o *Options, res *Result) error {
	todo := [][]int32{o.Path}
	for len(todo) > 0 {
		path := todo[0]
		todo = todo[1:]
		hints := o.Hints
		if len(path) != len(o.Path) {
			hints = nil
		}
		m := &esMessage{c: c, path: path, first: o.First, last: o.Last, hints: hints, found: map[int32]*esField{}}
		err := m.run(ctx)
		if err == nil && o.Refine {
			err = m.refine(ctx)
		}
		m.report(res)
		if err != nil {
			return err
		}
		for _, f := range res.Fields {
			if f.Path == pathText(path) && f.Class == Message && f.Label != "map" && len(path)-len(o.Path) < o.Depth {
				todo = append(todo, append(slices.Clone(path), f.Number))
			}
		}
	}
	if o.Type {
		if err := requestType(ctx, c, res); err != nil {
			return err
		}
	}
	return namesES(ctx, c, o, res)
}

// An esMessage is what is known of one message of a protobuf-es server.
type esMessage struct {
	c           *client
	path        []int32
	first, last int32
	hints       map[int32]Hint
	found       map[int32]*esField
	excluded    map[int32]bool // numbers that could not be told apart from their neighbours
	notes       []string
	complete    bool // nothing was left in any batch
}

type esField struct {
	number    int32
	slot      slot
	group     bool
	confirmed bool   // a varint that no message of the same shape can be
	text      string // "string" or "bytes", or ""
	evidence  []string
}

func (m *esMessage) readingOf(n int32) (reading, bool) {
	f := m.found[n]
	if f == nil {
		return reading{n, absent}, true
	}
	if f.group {
		return reading{}, false
	}
	as, ok := map[slot]consumption{
		slotFixed32: asFixed32, slotFixed64: asFixed64, slotLen: asLen,
		slotVarint: asVarint, slotMessage: asVarint, slotPacked: asVarint,
	}[f.slot]
	return reading{n, as}, ok
}

const (
	nearNumbers    = 64 // below it a candidate's own message may well use the number
	nearReadings   = 6
	finalReadings  = 40
	finalAbsent    = 16 // numbers from 1 that are read though unknown
	maxPayloadSize = 512 << 10
)

// readings are those that tell candidate n's own message from the outer one, of
// the numbers that are known by the time n is met: n and those above.
func (m *esMessage) readings(n int32) []reading {
	out := []reading{{n, asVarint}}
	if n > nearNumbers {
		return out
	}
	for k := n + 1; k <= m.last && k <= n+nearNumbers && len(out) <= nearReadings; k++ {
		if r, ok := m.readingOf(k); ok && (r.as != absent || k <= n+2) && !m.excluded[k] {
			out = append(out, r)
		}
	}
	return out
}

// allReadings are those of all that is known once nothing is left to find.
func (m *esMessage) allReadings() []reading {
	var out []reading
	for _, n := range m.order() {
		if r, ok := m.readingOf(n); ok && len(out) < finalReadings {
			out = append(out, r)
		}
	}
	for n := max(m.first, 1); n <= min(m.last, finalAbsent); n++ {
		if m.found[n] == nil && !m.excluded[n] {
			out = append(out, reading{n, absent})
		}
	}
	return out
}

func (m *esMessage) order() []int32 {
	var out []int32
	for n := range m.found {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// run finds all fields, from the highest number down: a request a field.
func (m *esMessage) run(ctx context.Context) error {
	m.excluded = map[int32]bool{}
	var deep int32 // the varint that is yet to be told from a message that has itself
	for high := m.last; ; {
		var batch []int32
		size := 0
		n := high
		for ; n >= m.first && len(batch) < maxBatch-1 && size < maxPayloadSize; n-- {
			if m.found[n] == nil && !m.excluded[n] {
				batch = append(batch, n)
				size += 60
			}
		}
		low := n
		last := low < m.first
		a, err := m.c.ask(ctx, fmt.Sprintf("%s: numbers %d to %d", m.at(), high, low+1), m.payload(deep, batch, last))
		if err != nil {
			return err
		}
		index, s, illegal, ok := readCanary(a.message)
		switch {
		case ok && s == slotEnd && index == len(batch):
			m.settled(deep, "deep nesting is read without going down")
			deep = 0
			if last {
				m.complete = true
				return nil
			}
			high = low
		case ok && index < len(batch) && s != slotEnd:
			m.settled(deep, "deep nesting is read without going down")
			f := &esField{number: batch[index], slot: s}
			f.evidence = append(f.evidence, fmt.Sprintf("request %d: %s", m.c.requests, quote(a.message)))
			m.found[f.number] = f
			deep = 0
			if s == slotVarint && !m.hints[f.number].Varint {
				deep = f.number
			}
		case ok && index > len(batch) && index-len(batch)-1 < len(m.candidatesForMessage()):
			m.settled(deep, "deep nesting is read without going down")
			deep = 0
			f := m.found[m.candidatesForMessage()[index-len(batch)-1]]
			f.slot = slotMessage
			f.evidence = append(f.evidence, fmt.Sprintf("request %d: other fields are read in it than around it", m.c.requests))
		case deep != 0 && a.parser:
			f := m.found[deep]
			f.slot = slotMessage
			f.evidence = append(f.evidence, fmt.Sprintf("request %d: deep nesting is gone down: %s", m.c.requests, quote(a.message)))
			deep = 0
		case a.parser:
			if err := m.isolate(ctx, batch, illegal); err != nil {
				return err
			}
		default:
			return &stopError{fmt.Sprintf("the answer to request %d tells nothing of the parser: %s", m.c.requests, a.brief())}
		}
	}
}

func (m *esMessage) settled(n int32, why string) {
	if f := m.found[n]; f != nil && n != 0 {
		f.evidence = append(f.evidence, fmt.Sprintf("request %d: %s", m.c.requests, why))
	}
}

// candidatesForMessage are the varints that the last part of a payload confirms.
func (m *esMessage) candidatesForMessage() []int32 {
	var out []int32
	for _, n := range m.order() {
		if m.found[n].slot == slotVarint && !m.hints[n].Varint {
			out = append(out, n)
		}
	}
	return out
}

// payload lays the canaries of a batch, then of what is to be confirmed when
// nothing of the batch is there, then the end.
func (m *esMessage) payload(deep int32, batch []int32, last bool) []byte {
	var b []byte
	if deep != 0 {
		b = appendDeep(b, deep)
	}
	for i, n := range batch {
		b = appendFixedTest(b, n, i)
		b = appendLenTest(b, n, i)
		b = appendVarintTest(b, n, i, m.readings(n))
	}
	if last {
		readings := m.allReadings()
		for i, n := range m.candidatesForMessage() {
			if i+len(batch)+1 < maxBatch {
				b = appendConfirmation(b, n, len(batch)+1+i, readings)
			}
		}
	}
	return wrap(m.path, appendEnd(b, len(batch)))
}

// isolate finds the number at which the parser stumbled without saying where:
// a group, or what we do not know of. It is left out from then on.
func (m *esMessage) isolate(ctx context.Context, batch []int32, illegal bool) error {
	for len(batch) > 1 {
		half := batch[:len(batch)/2]
		a, err := m.c.ask(ctx, fmt.Sprintf("%s: numbers %d to %d, to isolate one", m.at(), half[0], half[len(half)-1]), m.payload(0, half, false))
		if err != nil {
			return err
		}
		if index, s, _, ok := readCanary(a.message); ok && s == slotEnd && index == len(half) {
			batch = batch[len(batch)/2:]
			continue
		} else if ok {
			return nil // a field before it: it is found in its turn
		}
		batch = half
	}
	if len(batch) == 0 {
		return &stopError{"the parser stumbles over what has no field in it"}
	}
	n := batch[0]
	m.excluded[n] = true
	if illegal {
		m.found[n] = &esField{number: n, group: true, evidence: []string{
			fmt.Sprintf("request %d: its value is read as tags at once, without a length", m.c.requests),
		}}
	}
	return nil
}

// refine tells text from bytes: one request a field.
func (m *esMessage) refine(ctx context.Context) error {
	strict := false
	for _, n := range m.order() {
		f := m.found[n]
		if f.slot != slotLen || f.group {
			continue
		}
		a, err := m.c.ask(ctx, fmt.Sprintf("%s: is %d text", m.at(), n), wrap(m.path, appendEnd(appendBadText(nil, n), 0)))
		if err != nil {
			return err
		}
		_, s, _, ok := readCanary(a.message)
		switch {
		case a.parser && !ok && badTextES(a.message):
			f.text, strict = "string", true
			f.evidence = append(f.evidence, fmt.Sprintf("request %d: text that is no UTF-8 is refused: %s", m.c.requests, quote(a.message)))
		case ok && s == slotEnd:
			f.text = "bytes"
			f.evidence = append(f.evidence, fmt.Sprintf("request %d: bytes that are no UTF-8 are taken", m.c.requests))
		}
	}
	if !strict { // a parser that does not look at text tells nothing
		for _, f := range m.found {
			if f.text == "bytes" {
				f.text = ""
			}
		}
	}
	return nil
}

func badTextES(message string) bool {
	return strings.Contains(message, "not valid for encoding") || strings.Contains(strings.ToLower(message), "utf-8")
}

func (m *esMessage) at() string {
	if len(m.path) == 0 {
		return "request"
	}
	return "message at " + pathText(m.path)
}

// report says what is known.
func (m *esMessage) report(res *Result) {
	for _, n := range m.order() {
		f := m.found[n]
		out := Field{Path: pathText(m.path), Number: n, Evidence: f.evidence}
		switch {
		case f.group:
			out.Class, out.Kind = Message, "group"
		case f.slot == slotFixed32:
			out.Class, out.Kind = Fixed32, "fixed32"
		case f.slot == slotFixed64:
			out.Class, out.Kind = Fixed64, "fixed64"
		case f.slot == slotLen:
			out.Class, out.Kind = Len, f.text
		case f.slot == slotMap:
			out.Class, out.Kind, out.Label = Message, "message", "map"
		case f.slot == slotMessage:
			out.Class, out.Kind = Message, "message"
		case f.slot == slotPacked:
			out.Class, out.Kind, out.Label = Varint, "varint", "repeated"
		case m.hints[n].Varint:
			out.Class, out.Kind, out.Label = Varint, "varint", "singular"
			out.Evidence = append(out.Evidence, "it is a varint in the capture")
		case m.hints[n].Len:
			out.Class, out.Kind = Message, "message"
			out.Evidence = append(out.Evidence, "it has a length in the capture")
		case m.distinct(n):
			out.Class, out.Kind, out.Label = Varint, "varint", "singular"
		default:
			out.Evidence = append(out.Evidence, "a varint, or a message whose own fields read like those around it: a capture would tell")
		}
		res.Fields = append(res.Fields, out)
	}
	if !m.complete {
		res.note(fmt.Sprintf("%s: not all numbers were asked about", m.at()))
	}
}

// distinct reports whether the message has so many fields that another type,
// read in its place, could hardly have the same.
func (m *esMessage) distinct(n int32) bool {
	if !m.complete {
		return false
	}
	weight := 0
	for k, f := range m.found {
		switch {
		case k == n || f.group || f.slot == slotMap:
		case f.slot == slotVarint:
			weight++
		default:
			weight += 2
		}
	}
	return weight >= 2 || n > finalAbsent
}
