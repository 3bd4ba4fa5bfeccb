package es

import (
	"fmt"
	"maps"
	"slices"

	"unwire/replay/probe"
)

// A server is what is known of a protobuf-es server.
type server struct {
	// client is nil while a plan is made.
	*probe.Client
	options *probe.Options

	// controlled has the paths whose control was answered as it should be.
	controlled map[string]bool

	// typeAsked says that it was asked for the request's type, which tells its
	// version.
	typeAsked bool

	// showsMaps says that it skips nothing in entries of maps, so that a field that
	// was found to be a message is no map.
	showsMaps bool

	// countsLevels says that it counts the levels that it goes down, up to
	// levelLimit; levelsUncounted that it is known not to.
	countsLevels, levelsUncounted bool
}

func newServer(c *probe.Client, o *probe.Options) *server {
	return &server{Client: c, options: o, controlled: map[string]bool{}}
}

// sizeLimit is how many bytes of a message it takes; 0: any, as far as is known.
func (s *server) sizeLimit() int {
	if s.Client == nil {
		return 0
	}
	return s.MaxMessage
}

// A message is what is known of one message of a protobuf-es server.
type message struct {
	server  *server
	path    []int32
	groups  []int // places in path of groups
	entry   bool  // it is a map's entry, and the runtime skips nothing in those
	numbers probe.Numbers
	hints   map[int32]probe.Hint
	found   map[int32]*field
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

func newMessage(s *server, path []int32, numbers probe.Numbers) *message {
	m := &message{server: s, path: path, numbers: numbers, found: map[int32]*field{}, excluded: map[int32]bool{}}
	if slices.Equal(path, s.options.Path) {
		m.hints = s.options.Hints
	}
	return m
}

// firstMessage is what a protobuf-es server is asked about first: the first
// step of a path, before it is known whether the path leads to a message.
func (s *server) firstMessage() *message {
	paths, numbers := s.options.Targets()
	if first := paths[0]; len(first) > 0 {
		return newMessage(s, nil, probe.Numbers{{First: first[0], Last: first[0]}})
	}
	return newMessage(s, nil, numbers[""])
}

// FirstMessage is the message that a probe begins with. A protobuf-es server
// answers it with what is known of its first field.
func FirstMessage(c *probe.Client, o *probe.Options) []byte {
	return newServer(c, o).firstMessage().firstPayload()
}

type field struct {
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

func (m *message) order() []int32 { return slices.Sorted(maps.Keys(m.found)) }

// enter adds a field at whose canary the parser stumbled.
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

// isVarint enters that a varint's deep nesting was read without going down.
func (m *message) isVarint(n int32) {
	if f := m.found[n]; f != nil {
		m.addEvidence(f, "it cannot be nested deeply")
	}
}
