package es

import (
	"fmt"
	"maps"
	"slices"

	"unwire/replay/probe"
)

// A server is a probed protobuf-es server, with the properties determined so far.
type server struct {
	// Client sends the probe's requests; nil if only a plan is printed.
	*probe.Client
	options *probe.Options

	// controlled has the paths at which the server passed the control.
	controlled map[string]bool

	// typeAsked means that the server was asked for the request's type, which also reveals the
	// runtime's version.
	typeAsked bool

	// showsMaps means that the runtime skips nothing in map entries, so that a field found to be a
	// message is not a map.
	showsMaps bool

	// countsLevels means that the server limits nesting to levelLimit; levelsUncounted means that it
	// certainly does not.
	countsLevels, levelsUncounted bool
}

func newServer(c *probe.Client, o *probe.Options) *server {
	return &server{Client: c, options: o, controlled: map[string]bool{}}
}

// sizeLimit is the largest message in bytes that the server accepts; 0 if no limit is known.
func (s *server) sizeLimit() int {
	if s.Client == nil {
		return 0
	}
	return s.MaxMessage
}

// A message is the state of probing one message.
type message struct {
	server *server
	path   []int32
	// groups are the indexes in path of the fields that are groups.
	groups []int
	// entry means that the message is a map entry, in a runtime that does not skip unknown fields in
	// map entries.
	entry   bool
	numbers probe.Numbers
	hints   map[int32]probe.Hint
	found   map[int32]*field
	// excluded are numbers that could not be distinguished from their neighbours.
	excluded map[int32]bool
	// suspects are field numbers in descending order, one of which stops the parser without an error
	// that names a canary.
	suspects []int32
	// illegal means that the parser met an illegal tag at one of them.
	illegal bool
	// seek means that the next request tests which of them is a group.
	seek bool
	// assumed is an assumption that the next request tests.
	assumed *assumption
	// unknown are numbers at which the parser stops for an unknown reason.
	unknown []int32
	// unsure means that the path may not lead to a message.
	unsure bool
	// asked is the number of requests. Each uses its canary ids in another order.
	asked int
	// complete means that all field numbers were probed.
	complete bool
}

func newMessage(s *server, path []int32, numbers probe.Numbers) *message {
	m := &message{server: s, path: path, numbers: numbers, found: map[int32]*field{}, excluded: map[int32]bool{}}
	if slices.Equal(path, s.options.Path) {
		m.hints = s.options.Hints
	}
	return m
}

// firstMessage is the message that is probed first: the first step of the path, because it is not
// known yet whether the path leads to a message.
func (s *server) firstMessage() *message {
	paths, numbers := s.options.Targets()
	if first := paths[0]; len(first) > 0 {
		return newMessage(s, nil, probe.Numbers{{First: first[0], Last: first[0]}})
	}
	return newMessage(s, nil, numbers[""])
}

// FirstMessage returns the first message of a probe. The answer of a protobuf-es server already
// reveals the first field.
func FirstMessage(c *probe.Client, o *probe.Options) []byte {
	return newServer(c, o).firstMessage().firstPayload()
}

type field struct {
	number int32
	slot   slot
	group  bool
	// unsure means that it could not be determined whether the field is a message.
	unsure bool
	// level means that the field's content is parsed at the field's own nesting level.
	level bool
	// below means that the field's content is parsed one nesting level deeper, so that it is no map
	// entry.
	below bool
	// text is "string" or "bytes"; "" if unknown.
	text string
	// label is as in probe.Field: for fixed-size numbers, or "map" for a message.
	label    string
	evidence []string
}

func (m *message) order() []int32 { return slices.Sorted(maps.Keys(m.found)) }

// enter records the field at whose canary the parser stopped.
func (m *message) enter(n int32, s slot, a *probe.Answer) *field {
	f := &field{number: n, slot: s}
	m.addEvidence(f, a.Quoted())
	m.found[n] = f
	m.server.showsMaps = m.server.showsMaps || s == slotMap
	return f
}

func (m *message) addEvidence(f *field, what string) {
	f.evidence = append(f.evidence, fmt.Sprintf("request %d: %s", m.server.Requests, what))
}

// isVarint records that a deeply nested value was read without descending, as a varint.
func (m *message) isVarint(n int32) {
	if f := m.found[n]; f != nil {
		m.addEvidence(f, "it cannot be nested deeply")
	}
}
