package golang

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/replay/probe"
)

// A fieldTest is a value that protobuf-go refuses for some kinds of fields, and
// passes over for all others that are still asked about, unknown ones among them.
//
// Shape: a refusal for text says "invalid UTF-8", any other "cannot parse". A
// request ends with what is refused in the other of the two ways.
//
// Source: replay/probe/README.md#protobuf-go-invalid-utf-8-as-the-oracle
type fieldTest struct {
	name  string
	value []byte
	text  bool // what it looks for is refused as text
}

// The tests in their order: each leaves out what those before it found.
func fieldTests() []fieldTest {
	return []fieldTest{
		// An unknown field of a message, varints, and eight bytes, but no text.
		{name: "text", value: []byte{0xE0, 0xA8, 0x09, 0x80, 0x80, 0x80, 0x80, 0x00}, text: true},
		// Text, varints, and eight bytes; in a message it is an illegal tag.
		{name: "message", value: []byte{7, 7, 7, 7, 7, 7, 7, 7}},
		// Eight bytes, the last varint of which goes on.
		{name: "list of varints", value: []byte{1, 1, 1, 1, 1, 1, 1, 0x80}},
		// Neither four nor eight bytes.
		{name: "list of numbers of fixed size", value: []byte{1}},
	}
}

// fixed64Test tells lists of numbers of 8 bytes from those of 4.
func fixed64Test() fieldTest {
	return fieldTest{name: "list of numbers of 8 bytes", value: []byte{1, 1, 1, 1}}
}

const (
	maxBatch = 20_000 // numbers that are asked about in one request
	testSize = 15     // bytes of a test of one
)

// A message is what is known of one message of a Go server.
type message struct {
	server  *server
	path    []int32
	numbers probe.Numbers
	poison  []byte // of a whole request: text that is none; nil: none is known
	fields  map[int32]*probe.Field
	lazy    bool // a test was refused for what is in a lazy field
}

// A server is what is known of a Go server.
type server struct {
	*probe.Client

	// controlled has the tests at paths whose control was answered as it should be.
	controlled map[string]bool
}

func newServer(c *probe.Client) *server {
	return &server{Client: c, controlled: map[string]bool{}}
}

func (m *message) order() []int32 { return slices.Sorted(maps.Keys(m.fields)) }

func (m *message) report(res *probe.Result) {
	for _, n := range m.order() {
		res.Fields = append(res.Fields, *m.fields[n])
	}
	res.Shown[probe.PathText(m.path)] = m.poison != nil
}

// control asks about a number that no definition can have, which no test is
// refused for: once for each path and each way of refusing.
//
// Errors: a stopError where it is; then nothing is claimed of the message.
func (m *message) control(ctx context.Context, test fieldTest) error {
	about := fmt.Sprintf("%s %t", probe.PathText(m.path), test.text)
	if m.server.controlled[about] {
		return nil
	}
	hit, a, err := m.ask(ctx, test, []int32{int32(protowire.FirstReservedNumber)})
	if err == nil && hit {
		return probe.OracleOff(m.path, a)
	}
	m.server.controlled[about] = err == nil
	return err
}

// run makes all tests that can be made.
func (m *message) run(ctx context.Context) error {
	numbers := m.numbers
	for _, test := range fieldTests() {
		if !test.text && m.poison == nil {
			return nil
		}
		if err := m.control(ctx, test); err != nil {
			return err
		}
		for next := numbers.Below(math.MaxInt32); next > 0; {
			var set []int32
			for ; next > 0 && len(set) < m.maxBatch(); next = numbers.Below(next - 1) {
				if m.fields[next] == nil {
					set = append(set, next)
				}
			}
			slices.Reverse(set)
			if err := m.findAll(ctx, test, set, refusal{}); err != nil {
				return err
			}
		}
		if !test.text || m.poison != nil {
			continue
		}
		if len(m.fields) > 0 && !m.lazy {
			m.poison = probe.Wrap(m.path, probe.AppendBadText(nil, m.order()[0]))
		} else if err := m.poisonBelow(ctx, numbers); err != nil {
			return err
		}
	}
	return m.sizes(ctx)
}

// findPoison asks which of the fields that should be text is, so that a request
// to a Go server can end with it.
func (m *message) findPoison(ctx context.Context, texts []int32) error {
	for _, n := range texts[:min(len(texts), maxTexts)] {
		hit, _, err := m.ask(ctx, fieldTests()[0], []int32{n})
		if err != nil {
			return err
		}
		if hit {
			m.poison = probe.Wrap(m.path, probe.AppendBadText(nil, n))
			return nil
		}
	}
	return nil
}

// maxTexts is how many fields that should be text are tried.
const maxTexts = 8

// maxBatch is how many numbers are asked about in one request.
func (m *message) maxBatch() int {
	if m.server.MaxMessage > 0 {
		return min(maxBatch, m.server.MaxMessage/testSize)
	}
	return maxBatch
}

// nestedTexts is up to which number text is looked for in messages below: with
// it a test has a multiple of eight bytes, which lists take.
const nestedTexts = 12

// poisonBelow looks for text in the messages of a message that has none.
func (m *message) poisonBelow(ctx context.Context, numbers probe.Numbers) error {
	var set, inner []int32
	for n := numbers.Below(math.MaxInt32); n > 0; n = numbers.Below(n - 1) {
		set = append(set, n)
	}
	slices.Reverse(set)
	set = set[:min(len(set), maxBatch/10)]
	text := fieldTests()[0]
	below := fieldTest{name: "text one level down", text: true}
	for n := int32(1); n <= nestedTexts; n++ {
		inner = append(inner, n)
		below.value = protowire.AppendTag(below.value, protowire.Number(n), protowire.BytesType)
		below.value = protowire.AppendBytes(below.value, text.value)
	}
	for {
		n, err := m.findFirst(ctx, below, set)
		if err != nil || n == 0 {
			return err
		}
		child := &message{server: m.server, path: append(slices.Clone(m.path), n)}
		k, err := child.findFirst(ctx, text, inner)
		if err != nil {
			return err
		}
		if k != 0 && !child.lazy {
			m.poison = probe.Wrap(child.path, probe.AppendBadText(nil, k))
			return nil
		}
		set = slices.DeleteFunc(set, func(other int32) bool { return other == n })
	}
}

// findPoisonAbove looks for text among the request's own fields, so that it is
// known whether a path leads to a message before anything is asked of it.
func (m *message) findPoisonAbove(ctx context.Context, numbers probe.Numbers) error {
	text := fieldTests()[testText]
	if err := m.control(ctx, text); err != nil {
		return err
	}
	var set []int32
	for n := numbers.Below(math.MaxInt32); n > 0; n = numbers.Below(n - 1) {
		set = append(set, n)
	}
	slices.Reverse(set)
	for part := range slices.Chunk(set, m.maxBatch()) {
		n, err := m.findFirst(ctx, text, part)
		if err != nil {
			return err
		}
		if n != 0 {
			m.poison = probe.AppendBadText(nil, n)
			return nil
		}
	}
	return nil
}

// findFirst finds one number of a set that a test is refused for; 0 is none.
func (m *message) findFirst(ctx context.Context, test fieldTest, set []int32) (int32, error) {
	if len(set) == 0 {
		return 0, nil
	}
	hit, _, err := m.ask(ctx, test, set)
	if err == probe.ErrSize && len(set) > 1 {
		if n, err := m.findFirst(ctx, test, set[:len(set)/2]); n != 0 || err != nil {
			return n, err
		}
		return m.findFirst(ctx, test, set[len(set)/2:])
	}
	if err != nil || !hit {
		return 0, err
	}
	for len(set) > 1 {
		half := len(set) / 2
		if hit, _, err = m.ask(ctx, test, set[:half]); err != nil {
			return 0, err
		}
		if hit {
			set = set[:half]
		} else {
			set = set[half:]
		}
	}
	return set[0], nil
}

// A refusal is what a test was refused with; its zero value is none.
type refusal struct {
	answer  *probe.Answer
	request int
	alone   bool // the test was of one number
}

// findAll halves a set until each number that the test is refused for stands
// alone; known is the refusal of a set whose first number that it is refused for
// is the first in this one, too.
func (m *message) findAll(ctx context.Context, test fieldTest, set []int32, known refusal) error {
	if len(set) == 0 {
		return nil
	}
	if known.answer == nil {
		hit, a, err := m.ask(ctx, test, set)
		if err == probe.ErrSize && len(set) > 1 {
			if err := m.findAll(ctx, test, set[:len(set)/2], refusal{}); err != nil {
				return err
			}
			return m.findAll(ctx, test, set[len(set)/2:], refusal{})
		}
		if err != nil || !hit {
			return err
		}
		known = refusal{a, m.server.Requests, len(set) == 1}
	}
	if len(set) == 1 {
		m.enter(test, set[0], known)
		return nil
	}
	left, right := set[:len(set)/2], set[len(set)/2:]
	before := len(m.fields)
	if err := m.findAll(ctx, test, left, refusal{}); err != nil {
		return err
	}
	if len(m.fields) > before {
		known = refusal{}
	}
	return m.findAll(ctx, test, right, known)
}

// ask asks whether a test is refused for one of the numbers of a set.
func (m *message) ask(ctx context.Context, test fieldTest, set []int32) (hit bool, a *probe.Answer, err error) {
	var b []byte
	for _, n := range set {
		b = protowire.AppendTag(b, protowire.Number(n), protowire.BytesType)
		b = protowire.AppendBytes(b, test.value)
	}
	end := m.poison
	if test.text {
		end = []byte{0x07}
	}
	a, err = m.server.Ask(ctx, fmt.Sprintf("%s among %d numbers from %d%s", test.name, len(set), set[0], m.at()), append(probe.Wrap(m.path, b), end...))
	if err != nil {
		return false, nil, err
	}
	switch {
	case a.FromParser && refusesText(a.Text):
		return test.text, a, nil
	case a.FromParser && strings.Contains(a.Text, refusedLazily):
		m.lazy = true
		return true, a, nil
	case a.FromParser && refusesWire(a.Text):
		return !test.text, a, nil
	}
	return false, nil, probe.Stop("the answer to request %d tells nothing of the parser: %s", m.server.Requests, a.Brief())
}

func (m *message) at() string {
	if len(m.path) == 0 {
		return ""
	}
	return " at " + probe.PathText(m.path)
}

func refusesText(message string) bool { return strings.Contains(message, "invalid UTF-8") }

// refusesWire reports whether protobuf-go refused what is no message. The opaque
// API has words of its own in messages that have lazy fields.
func refusesWire(message string) bool {
	for _, words := range []string{"cannot parse", "invalid field number", "mismatching end group marker", "missing end group marker"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// refusedLazily is how protobuf-go refuses what is in a lazy field, whether it is
// text or no message. What ends a request is never in one, so it is the test
// that was refused.
const refusedLazily = "invalid proto wire format"

var namedField = regexp.MustCompile(`field ([\w.]+)\.(\w+) contains invalid UTF-8`)

// enter adds a field; the parser names the first text that is none.
func (m *message) enter(test fieldTest, n int32, r refusal) {
	f := &probe.Field{Path: probe.PathText(m.path), Number: n}
	switch test.name {
	case "text":
		f.Class, f.Kind, f.Type = probe.Len, "string", "string"
	case "message":
		f.Class, f.Kind = probe.Message, "message"
	case "list of varints":
		f.Class, f.Kind, f.Label = probe.Varint, "varint", "repeated"
	default:
		f.Label = "repeated" // sizes tells the rest
	}
	if match := namedField.FindStringSubmatch(r.answer.Text); match != nil && test.text {
		f.Name = match[2]
	}
	among := ""
	if !r.alone {
		among = ", the first of those asked together"
	}
	f.Evidence = []string{fmt.Sprintf("request %d: % x is refused as a %s%s: %s", r.request, test.value, test.name, among, r.answer.Quoted())}
	m.fields[n] = f
}

// sizes tells lists of 8 bytes from lists of 4.
func (m *message) sizes(ctx context.Context) error {
	for _, n := range m.order() {
		f := m.fields[n]
		if f.Class != "" {
			continue
		}
		hit, a, err := m.ask(ctx, fixed64Test(), []int32{n})
		if err != nil {
			return err
		}
		f.Class, f.Kind = probe.Fixed32, "fixed32"
		if hit {
			f.Class, f.Kind = probe.Fixed64, "fixed64"
		}
		f.Evidence = append(f.Evidence, fmt.Sprintf("request %d: four bytes: %s", m.server.Requests, a.Quoted()))
	}
	return nil
}
