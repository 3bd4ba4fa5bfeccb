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

	// options are the options of the probe.
	options *probe.Options

	// controlled has the paths at which the server has passed the control.
	controlled map[string]bool

	// typeAsked means that the type of the request was requested, which also reveals the runtime's
	// version.
	typeAsked bool

	// showsMaps means that the runtime does not skip unknown fields in map entries, so that maps can be
	// recognised, and a field found to be a message is not a map.
	showsMaps bool

	// countsLevels means that the server limits nesting to levelLimit; levelsUncounted means that it
	// certainly does not. If neither is set, this is unknown.
	countsLevels, levelsUncounted bool
}

// newServer returns a server of which nothing is known yet.
func newServer(c *probe.Client, o *probe.Options) *server {
	return &server{Client: c, options: o, controlled: map[string]bool{}}
}

// sizeLimit returns the largest message in bytes that the server accepts; 0 if no limit is known.
func (s *server) sizeLimit() int {
	if s.Client == nil {
		return 0
	}
	return s.MaxMessage
}

// A message is the state of probing one message in the request.
type message struct {
	// server is the probed server.
	server *server

	// path are the field numbers that lead to the message.
	path []int32
	// groups are the indexes in path of the fields that are groups.
	groups []int
	// entry means that the message is a map entry, in a runtime that does not skip unknown fields in
	// map entries.
	entry bool

	// numbers are the field numbers to probe.
	numbers probe.Numbers

	// hints are the wire types of fields in captured messages, by number.
	hints map[int32]probe.Hint

	// found are the fields found so far, by number.
	found map[int32]*field
	// excluded are field numbers that could not be distinguished from their neighbours.
	excluded map[int32]bool
	// suspects are field numbers in descending order, at one of which the parser stops without quoting
	// a canary.
	suspects []int32
	// illegal means that the parser reached an illegal tag at one of the suspects.
	illegal bool
	// seek means that the next request tests which of the suspects is a group.
	seek bool
	// assumed is an assumption that the next request tests.
	assumed *assumption
	// unknown are field numbers at which the parser stops for an unknown reason.
	unknown []int32
	// unsure means that it is uncertain whether the path leads to a message.
	unsure bool

	// asked is the number of requests sent so far. It changes the numbers of the canaries (illegal tags at which
	// the server's parser stops with an error) in each request, so that a server which always gives the same
	// response is noticed.
	asked int
	// complete means that all field numbers were probed.
	complete bool
}

// newMessage returns the state for probing the field numbers of the message at path.
func newMessage(s *server, path []int32, numbers probe.Numbers) *message {
	m := &message{server: s, path: path, numbers: numbers, found: map[int32]*field{}, excluded: map[int32]bool{}}
	if slices.Equal(path, s.options.Path) {
		m.hints = s.options.Hints
	}
	return m
}

// firstMessage returns the message that is probed first. If Options.Path is set, it is the first step
// of that path, because it is not known yet whether the path leads to a message.
func (s *server) firstMessage() *message {
	paths, numbers := s.options.Targets()
	if first := paths[0]; len(first) > 0 {
		return newMessage(s, nil, probe.Numbers{{First: first[0], Last: first[0]}})
	}
	return newMessage(s, nil, numbers[""])
}

// FirstMessage returns the first message that a probe sends. The response of a protobuf-es server
// already reveals the first field.
func FirstMessage(c *probe.Client, o *probe.Options) []byte {
	return newServer(c, o).firstMessage().firstPayload()
}

// A field is a field that was found, with what is known about its type.
type field struct {
	// number is the field number.
	number int32

	// slot is the class of the field's type.
	slot slot

	// group means that the field is a group.
	group bool
	// unsure means that it could not be determined whether the field is a message.
	unsure bool
	// level means that the field's content is parsed at the field's own nesting level.
	level bool
	// below means that the field's content is parsed one nesting level deeper, so that it is not a map
	// entry.
	below bool
	// text is "string" or "bytes"; "" if unknown.
	text string
	// label is the label as in probe.Field. It is only known for fixed-size numbers, and as "map" for
	// messages.
	label string

	// evidence are quotations of the server's responses.
	evidence []string
}

// order returns the numbers of the found fields in ascending order.
func (m *message) order() []int32 { return slices.Sorted(maps.Keys(m.found)) }

// enter records field n, at whose canary in slot s the parser stopped with response a.
func (m *message) enter(n int32, s slot, a *probe.Answer) *field {
	f := &field{number: n, slot: s}
	m.addEvidence(f, a.Quoted())
	m.found[n] = f
	m.server.showsMaps = m.server.showsMaps || s == slotMap
	return f
}

// addEvidence adds a quotation from the response to the last request.
func (m *message) addEvidence(f *field, what string) {
	f.evidence = append(f.evidence, fmt.Sprintf("unwire's request %d: %s", m.server.Requests, what))
}

// isVarint records that field n is a varint, because the parser did not descend into its deeply nested
// value.
func (m *message) isVarint(n int32) {
	if f := m.found[n]; f != nil {
		m.addEvidence(f, "the parser does not accept deeply nested copies of the field")
	}
}
