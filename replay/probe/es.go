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
		path := m.path
		if m.unsure {
			groups, ok, err := reachES(ctx, c, o, res, path, reached)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			m.groups = groups
		}
		err := m.run(ctx)
		if err == nil && o.Type && res.RequestType == "" {
			err = requestType(ctx, c, res)
			c.uncounted = c.uncounted || res.RequestType != "" && res.Runtime == ES1
		}
		if err == nil {
			err = m.measure(ctx)
		}
		if err == nil && o.Refine && res.Runtime != ES1 { // which does not look at text
			err = m.refine(ctx)
		}
		m.report(res)
		if err != nil {
			return err
		}
		for _, n := range m.order() {
			f := m.found[n]
			if len(path)-len(o.Path) >= o.Depth || len(o.Questions) > 0 || f.slot != slotMessage && !f.group {
				continue
			}
			below := newESMessage(c, o, append(slices.Clone(path), n), o.Numbers)
			below.groups = slices.Clone(m.groups)
			if f.group {
				below.groups = append(below.groups, len(path))
			}
			todo = append(todo, below)
		}
	}
	if err := names(ctx, c, o, res); err != nil {
		return err
	}
	if res.RequestType == "" {
		res.note("the version of connect-es is a guess: only its JSON tells it")
	}
	return nil
}

// An esMessage is what is known of one message of a protobuf-es server.
type esMessage struct {
	c        *client
	path     []int32
	groups   []int // places in path of groups
	numbers  []Range
	hints    map[int32]Hint
	found    map[int32]*esField
	excluded map[int32]bool // numbers that could not be told apart from their neighbours
	suspects []int32        // one of them, from the highest down, makes the parser stumble without saying where
	illegal  bool           // it stumbles over a tag there
	seek     bool           // the next request asks which of them is a group
	assumed  *assumption    // what the next request makes sure of
	unknown  []int32        // numbers at which it stumbles for a reason that is not known
	unsure   bool           // whether the path leads to a message
	asked    int            // requests, each of which has its canaries' ids in another order
	complete bool           // nothing was left in any batch
}

func newESMessage(c *client, o *Options, path []int32, numbers []Range) *esMessage {
	m := &esMessage{c: c, path: path, numbers: numbers, found: map[int32]*esField{}, excluded: map[int32]bool{}}
	if slices.Equal(path, o.Path) {
		m.hints = o.Hints
	}
	return m
}

// An assumption is a number that was found to be a group, but for chance, with
// what to go back to if it is none.
type assumption struct {
	number, high int32
	suspects     []int32
}

type esField struct {
	number   int32
	slot     slot
	group    bool
	unsure   bool   // whether it is a message was not told
	level    bool   // what is in its value is read at the level of the field
	text     string // "string" or "bytes", or ""
	evidence []string
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
	candidateSize  = 60 // about what the canaries of a candidate take
)

// readings are those that tell candidate n's own message from the outer one, of
// the numbers that are known by the time n is met: n and those above.
func (m *esMessage) readings(n int32) []reading {
	out := []reading{{n, asVarint}}
	if n > nearNumbers {
		return out
	}
	for k := n + 1; k <= n+nearNumbers && len(out) <= nearReadings; k++ {
		if below(m.numbers, k) != k {
			continue
		}
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
	for n := int32(1); n <= finalAbsent; n++ {
		if below(m.numbers, n) == n && m.found[n] == nil && !m.excluded[n] {
			out = append(out, reading{n, absent})
		}
	}
	return out
}

func (m *esMessage) order() []int32 { return slices.Sorted(maps.Keys(m.found)) }

// firstPayload is what is asked first.
func (m *esMessage) firstPayload() []byte {
	return m.payload(0, m.ahead(m.fitting(m.batch(maxNumber))))
}

// fitting is as much of a batch as the server takes in one message.
func (m *esMessage) fitting(b batch) batch {
	for m.small() && len(b.numbers) > 1 && len(m.payload(0, b)) > m.c.most {
		b = b.cut(len(b.numbers) * 3 / 4)
	}
	return b
}

// A batch is a run of candidates, from the highest number down.
type batch struct {
	numbers []int32
	next    int32  // the first number that is not in it; 0: nothing is below it
	looks   []look // what is asked about behind candidates
	base    int    // the index of the first of them
}

func (b batch) last() bool { return b.next == 0 }

func (m *esMessage) batch(high int32) batch {
	var b batch
	n := below(m.numbers, high)
	for size := 0; n > 0 && len(b.numbers) < maxBatch/2 && size < m.maxPayload(); n = below(m.numbers, n-1) {
		if m.found[n] == nil && !m.excluded[n] {
			b.numbers = append(b.numbers, n)
			size += candidateSize
		}
	}
	b.next = n
	return b
}

// maxPayload is how large the tests of a batch are.
func (m *esMessage) maxPayload() int {
	if m.small() {
		return m.c.most - smallRest
	}
	return maxPayloadSize
}

// smallRest is for what is around a batch in small messages.
const smallRest = 900

// small reports whether the server takes small messages only: then nothing is
// asked ahead, nested deeply, or confirmed, and what only that would tell is
// not said.
func (m *esMessage) small() bool { return m.c != nil && m.c.most > 0 && m.c.most < maxPayloadSize }

// cut is the first n numbers of a batch.
func (b batch) cut(n int) batch {
	if n < len(b.numbers) {
		b.numbers, b.next = b.numbers[:n], b.numbers[n]
	}
	return b
}

// about says what a batch asks about.
func (b batch) about() string {
	if len(b.numbers) == 0 {
		return "what was found"
	}
	return fmt.Sprintf("numbers %d to %d", b.numbers[0], b.numbers[len(b.numbers)-1])
}

// run finds all fields, from the highest number down: a request a field. What
// was passed is not asked about again.
func (m *esMessage) run(ctx context.Context) error {
	var deep int32 // the varint that is yet to be told from a message that has itself
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

// id is the index of a canary's id in the next request: other ones than in the
// last, so that who says the same to everything is found out.
func (m *esMessage) id(index int) int { return (index + m.asked*idStep) % assertion }

// read finds the index of the canary that an answer names.
func (m *esMessage) read(a *answer) (index int, s slot, illegal, ok bool) {
	index, s, illegal, ok = readCanary(a.message)
	if ok && index < assertion {
		index = ((index-m.asked*idStep)%assertion + assertion) % assertion
	}
	return index, s, illegal, ok
}

// control asks with no candidate, where the parser meets nothing but the end.
//
// Errors: a stopError where the answer does not name it; then nothing is claimed.
func (m *esMessage) control(ctx context.Context) error {
	if m.c.controlled {
		return nil
	}
	a, err := m.c.ask(ctx, m.at()+": no numbers", m.whole(appendEnd(nil, m.id(0))))
	if err != nil {
		return err
	}
	if index, s, _, ok := m.read(a); !ok || s != slotEnd || index != 0 {
		return oracleOff(a)
	}
	m.c.controlled = true
	return nil
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
			m.stumbles(m.suspects[0], a)
			return high, 0, nil
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
		m.seek = illegal && len(m.suspects) == 0
		m.suspects, m.illegal = b.numbers, illegal
		return from, 0, nil
	case a.parser && len(b.numbers) == 1:
		m.isVarint(deep)
		m.suspects, m.illegal = b.numbers, illegal
		if err := m.control(ctx); err != nil {
			return 0, 0, err
		}
		m.stumbles(b.numbers[0], a)
		return b.next, 0, nil
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
	return f
}

// seekGroup asks which of the suspects is a group, whose tags are read at once:
// the first field among them that exists is one, or we do not know what.
//
// Shape: 0 is none. What is no group may jump to a canary by chance.
func (m *esMessage) seekGroup(ctx context.Context, b batch) (int32, error) {
	var p []byte
	for i, n := range b.numbers {
		p = appendGroupTest(p, n, m.id(i))
	}
	a, err := m.c.ask(ctx, fmt.Sprintf("%s: which of %s is a group?", m.at(), b.about()), m.whole(appendEnd(p, m.id(len(b.numbers)))))
	if err != nil {
		return 0, err
	}
	index, s, _, ok := m.read(a)
	m.asked++
	if !ok || s != slotEnd || index >= len(b.numbers) {
		return 0, m.control(ctx)
	}
	m.stumbles(b.numbers[index], a)
	return b.numbers[index], nil
}

// levelsCounted is how protobuf-es 2 says where it gives up.
const levelsCounted = "maximum recursion depth of 100 "

// gaveUpES reports whether a parser went down too far: protobuf-es 2 counts
// levels, protobuf-es 1 runs out of stack.
func gaveUpES(message string) bool {
	s := strings.ToLower(message)
	return strings.Contains(s, "recursion") || strings.Contains(s, "call stack")
}

// clear takes numbers out of the suspects: the parser is past them.
func (m *esMessage) clear(numbers []int32) {
	for _, n := range numbers {
		if len(m.suspects) > 0 && m.suspects[0] == n {
			m.suspects = m.suspects[1:]
		}
	}
}

// stumbles enters the one suspect that is left: a number at which the parser
// stumbles without saying where. It is a group, or what we do not know of, and
// is left out from then on.
func (m *esMessage) stumbles(n int32, a *answer) {
	m.suspects = nil
	m.excluded[n] = true
	if m.illegal {
		m.found[n] = &esField{number: n, group: true}
		m.tell(m.found[n], "its value is read as tags at once, without a length: no number above it is, and "+quote(a.message))
		return
	}
	m.unknown = append(m.unknown, n)
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

// candidatesForMessage are the varints that the last part of a payload confirms.
func (m *esMessage) candidatesForMessage() []int32 {
	var out []int32
	if m.small() {
		return nil
	}
	for _, n := range m.order() {
		if m.found[n].slot == slotVarint && !m.hints[n].Varint {
			out = append(out, n)
		}
	}
	return out
}

// payload lays the canaries of a batch, then of what is to be confirmed when
// nothing of the batch is there, then the end.
func (m *esMessage) payload(deep int32, batch batch) []byte {
	var b []byte
	if m.assumed != nil {
		b = appendGroupAssertion(b, m.assumed.number)
	}
	if deep != 0 {
		b = appendDeep(b, deep, m.levels())
	}
	count := len(batch.numbers)
	for i, n := range batch.numbers {
		if len(batch.looks) > 0 && i < lookFrom {
			b = appendFixedJumps(b, n, m.place(batch, i, slotFixed32), m.place(batch, i, slotFixed64))
			b = appendLenJump(b, n, m.id(i), m.place(batch, i, slotLen))
		} else {
			b = appendFixedTest(b, n, m.id(i))
			b = appendLenTest(b, n, m.id(i))
		}
		b = appendVarintTest(b, n, m.id(i), m.readings(n))
	}
	if batch.last() {
		readings := m.allReadings()
		for i, n := range m.candidatesForMessage() {
			if i+count+1 < assertion {
				b = appendConfirmation(b, n, m.id(count+1+i), readings)
			}
		}
	}
	if m.measures(deep, batch) {
		b = appendGroups(b, levelLimit)
	}
	return m.whole(appendEnd(b, m.id(count)))
}

// levels is how deep a payload goes so that the parser gives up.
func (m *esMessage) levels() int {
	if m.c.counted {
		return 2 * levelLimit
	}
	return tooDeep
}

// measures reports whether a payload ends with groups that are too deep for a
// parser that counts levels, as measure wants to know: nothing stumbled before them.
func (m *esMessage) measures(deep int32, batch batch) bool {
	return batch.last() && deep == 0 && len(m.path) == 0 && len(m.suspects) == 0 && (m.c == nil || !m.c.counted && !m.c.uncounted)
}

// whole is a request around the message. It ends behind it, too, so that no
// parser takes it even where the path leads to no message.
func (m *esMessage) whole(message []byte) []byte {
	return appendEnd(wrap(m.path, message, m.groups...), maxBatch-1)
}

// refine tells text from bytes: one request a field.
func (m *esMessage) refine(ctx context.Context) error {
	strict := false
	for _, n := range m.order() {
		f := m.found[n]
		if f.slot != slotLen || f.group {
			continue
		}
		a, err := m.c.ask(ctx, fmt.Sprintf("%s: is %d text", m.at(), n), m.whole(appendEnd(appendBadText(nil, n), 0)))
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
				f.text, f.evidence = "", f.evidence[:len(f.evidence)-1]
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
		case f.level, m.distinct(n) && !f.unsure:
			out.Class, out.Kind, out.Label = Varint, "varint", "singular"
		default:
			out.Evidence = append(out.Evidence, "a varint, or a message whose own fields read like those around it: a capture would tell")
		}
		res.Fields = append(res.Fields, out)
	}
	for _, n := range m.unknown {
		res.note(fmt.Sprintf("%s: the parser stumbles at %d, and does not say over what: it exists, and is of no kind that is known", m.at(), n))
	}
	res.complete[pathText(m.path)] = m.complete && len(m.unknown) == 0
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
	return weight >= enoughWeight || n > finalAbsent && count(m.numbers) > finalAbsent
}

// enoughWeight is how much there must be around a varint: a text and another varint, say.
const enoughWeight = 3
