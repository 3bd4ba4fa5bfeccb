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

// A fieldTest is a field value that protobuf-go rejects if the field is of a certain kind, and accepts
// or skips if it is of another kind or unknown.
//
// Shape: the error for invalid strings is "invalid UTF-8"; all others are "cannot parse". Each request
// ends with bytes that are rejected with the other error, so that the RPC handler never runs.
//
// Source: replay/probe/README.md#protobuf-go-invalid-utf-8-as-the-oracle
type fieldTest struct {
	// name describes the kind of field that is tested for.
	name string

	// value is the value of the length-delimited field, without tag and length.
	value []byte
	// text means that a field of the tested kind is rejected with the error for invalid strings.
	text bool
}

// fieldTests returns the tests in the order in which they are made. A field that one test finds is left
// out of later ones.
func fieldTests() []fieldTest {
	return []fieldTest{
		// Valid as a message (an unknown field), as varints and as eight bytes, but not as UTF-8.
		{name: "text", value: []byte{0xE0, 0xA8, 0x09, 0x80, 0x80, 0x80, 0x80, 0x00}, text: true},
		// Valid as a string, as varints and as eight bytes; as a message it is an illegal tag.
		{name: "message", value: []byte{7, 7, 7, 7, 7, 7, 7, 7}},
		// Eight bytes whose last varint is not terminated.
		{name: "list of varints", value: []byte{1, 1, 1, 1, 1, 1, 1, 0x80}},
		// Neither four nor eight bytes long.
		{name: "list of numbers of fixed size", value: []byte{1}},
	}
}

// fixed64Test returns the test that distinguishes lists of 8-byte numbers from lists of 4-byte numbers.
func fixed64Test() fieldTest {
	return fieldTest{name: "list of numbers of 8 bytes", value: []byte{1, 1, 1, 1}}
}

const (
	// maxBatch is the number of field numbers in one request.
	maxBatch = 20_000
	// testSize is the size in bytes of the test of one field.
	testSize = 15
)

// A message is the state of probing one message in a Go server's request.
type message struct {
	// server is the probed server.
	server *server

	// path are the field numbers that lead to the message.
	path []int32

	// numbers are the field numbers to probe.
	numbers probe.Numbers
	// poison is a complete request that the parser rejects because of invalid UTF-8 in a string; nil if
	// no string field is known. It is appended to tests.
	poison []byte

	// fields are the fields found so far, by number.
	fields map[int32]*probe.Field
	// lazy means that a test was rejected because of the content of a field that protobuf-go parses
	// lazily.
	lazy bool
}

// A server is a probed Go server, with the properties determined so far.
type server struct {
	// Client sends the requests.
	*probe.Client

	// controlled has the paths and kinds of errors for which the control was passed: a field that
	// cannot exist was not rejected.
	controlled map[string]bool

	// end is how requests without poison end; nil if they cannot be sent.
	end *completeEnd

	// endAsked means that end was determined.
	endAsked bool
}

// newServer returns a server of which nothing is known yet.
func newServer(c *probe.Client) *server {
	return &server{Client: c, controlled: map[string]bool{}}
}

// order returns the numbers of the found fields in ascending order.
func (m *message) order() []int32 { return slices.Sorted(maps.Keys(m.fields)) }

// report adds the found fields to the result.
func (m *message) report(res *probe.Result) {
	for _, n := range m.order() {
		res.Fields = append(res.Fields, *m.fields[n])
	}
	res.Shown[probe.PathText(m.path)] = m.poison != nil || m.server.end != nil
}

// control makes the test with a field number that no definition can have, once for each path and kind
// of error.
//
// Errors: a stopError if the server rejects it. Nothing is reported about the message then.
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

// run executes all tests that are possible for the message.
func (m *message) run(ctx context.Context) error {
	numbers := m.numbers
	for _, test := range fieldTests() {
		if !test.text && m.poison == nil {
			if ok, err := m.server.findEnd(ctx); !ok {
				return err
			}
		}
		if err := m.control(ctx, test); err != nil {
			return err
		}

		// Test the numbers in batches, from the highest down.
		for next := numbers.Below(math.MaxInt32); next > 0; {
			var set []int32
			for ; next > 0 && len(set) < m.maxBatch(); next = numbers.Below(next - 1) {
				if m.fields[next] == nil && !m.isUntested(next) {
					set = append(set, next)
				}
			}
			slices.Reverse(set)
			if err := m.findAll(ctx, test, set, refusal{}); err != nil {
				return err
			}
		}

		// The first string that was found becomes the poison of the other tests.
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

// isUntested reports whether a field number must not occur in requests, because the message could then
// be complete.
func (m *message) isUntested(n int32) bool {
	return m.poison == nil && m.server.end != nil && len(m.path) == 0 && slices.Contains(m.server.Untested(), n)
}

// findPoison tests which of the fields texts, which are probably strings, is one. Invalid UTF-8 in that
// field then ends later requests (poison).
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

// maxTexts limits the number of probable strings that are tested.
const maxTexts = 8

// maxBatch returns the largest number of field numbers in one request.
func (m *message) maxBatch() int {
	if m.server.MaxMessage > 0 {
		return min(maxBatch, m.server.MaxMessage/testSize)
	}
	return maxBatch
}

// nestedTexts is the highest field number that is tested in nested messages by poisonBelow. With it,
// the size of the test is a multiple of eight bytes, which packed lists accept.
const nestedTexts = 12

// poisonBelow looks for a string field in the messages nested in this message, which has no string
// field itself. Invalid UTF-8 in that field then ends later requests (poison).
func (m *message) poisonBelow(ctx context.Context, numbers probe.Numbers) error {
	var set, inner []int32
	for n := numbers.Below(math.MaxInt32); n > 0; n = numbers.Below(n - 1) {
		set = append(set, n)
	}
	slices.Reverse(set)

	// The test value is a nested message in which each number has invalid UTF-8.
	set = set[:min(len(set), maxBatch/10)]
	text := fieldTests()[0]
	below := fieldTest{name: "text one level down", text: true}
	for n := int32(1); n <= nestedTexts; n++ {
		inner = append(inner, n)
		below.value = protowire.AppendTag(below.value, protowire.Number(n), protowire.BytesType)
		below.value = protowire.AppendBytes(below.value, text.value)
	}

	// Find a message that refuses it, and then the string in that message.
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

// findPoisonAbove looks for a string field among the request's own fields, before nested messages are
// probed. Invalid UTF-8 in that field then ends later requests (poison).
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

// findFirst returns one number in set for which the server rejects the test; 0 if there is none. It
// uses bisection.
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

// A refusal is the response with which the server rejected a test. The zero value means none.
type refusal struct {
	// answer is the response; nil for none.
	answer *probe.Answer

	// request is the number of the request.
	request int
	// alone means that the request tested a single field number.
	alone bool
}

// findAll finds all numbers in set for which the server rejects the test, by bisection, and records
// them. known is the response that rejected a larger set, if the reason for it must be in this one.
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

	// If the left half explains the refusal, the right half has to be tested anew.
	if len(m.fields) > before {
		known = refusal{}
	}
	return m.findAll(ctx, test, right, known)
}

// ask tests a set of field numbers in one request. hit means that the server rejected the test of one
// of them.
func (m *message) ask(ctx context.Context, test fieldTest, set []int32) (hit bool, a *probe.Answer, err error) {
	var b []byte
	for _, n := range set {
		b = protowire.AppendTag(b, protowire.Number(n), protowire.BytesType)
		b = protowire.AppendBytes(b, test.value)
	}
	what := fmt.Sprintf("%s among %d numbers from %d%s", test.name, len(set), set[0], m.at())
	switch b = probe.Wrap(m.path, b); {
	case test.text:
		a, err = m.server.Ask(ctx, what, append(b, 0x07))
	case m.poison != nil:
		a, err = m.server.Ask(ctx, what, append(b, m.poison...))
	default:
		a, err = m.server.askComplete(ctx, what, b)
		if err == nil && m.server.end.met(a) {
			return false, a, nil
		}
	}
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
	return false, nil, probe.Stop("the answer to request %d contains no error of the server's parser: %s", m.server.Requests, a.Brief())
}

// at returns the path of the message for the description of a request; "" for the request itself.
func (m *message) at() string {
	if len(m.path) == 0 {
		return ""
	}
	return " at " + probe.PathText(m.path)
}

// refusesText reports whether an error message rejects invalid UTF-8 in a string.
func refusesText(message string) bool { return strings.Contains(message, "invalid UTF-8") }

// refusesWire reports whether an error message of protobuf-go rejects malformed data. The opaque API
// words the error differently for messages with lazy fields.
func refusesWire(message string) bool {
	for _, words := range []string{"cannot parse", "invalid field number", "mismatching end group marker", "missing end group marker"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// refusedLazily is the error of protobuf-go for invalid content of a lazy field, whether it is a string
// or a message. The poison is never in a lazy field, so this error means that the test was rejected.
const refusedLazily = "invalid proto wire format"

// namedField matches the error for invalid UTF-8, which names the message type and the field.
var namedField = regexp.MustCompile(`field ([\w.]+)\.(\w+) contains invalid UTF-8`)

// enter records field number n, for which the response r rejected the test. The error names the first
// invalid string.
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
		// sizes finds out the rest
		f.Label = "repeated"
	}
	if match := namedField.FindStringSubmatch(r.answer.Text); match != nil && test.text {
		f.Name = match[2]
	}
	among := ""
	if !r.alone {
		among = ", the first of several numbers in the request"
	}
	f.Evidence = []string{fmt.Sprintf("unwire's request %d: the server rejects the bytes % x as %s%s: %s", r.request, test.value, test.name, among, r.answer.Quoted())}
	m.fields[n] = f
}

// sizes determines for lists of fixed-size numbers whether these have 4 or 8 bytes.
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
		f.Evidence = append(f.Evidence, fmt.Sprintf("unwire's request %d: answer to a list of four bytes: %s", m.server.Requests, a.Quoted()))
	}
	return nil
}
