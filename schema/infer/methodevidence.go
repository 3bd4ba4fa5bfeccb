package infer

import (
	"maps"
	"strings"

	"unwire/captures"
	"unwire/decode"
)

// methodEvidence has statistics of the recorded calls of an RPC method. Its JSON is part of stored evidence.
type methodEvidence struct {
	// Calls is the number of calls of the method.
	Calls int64 `json:"calls" pb:"1"`

	// MostUp is the largest number of messages that a client sent in one call.
	MostUp int64 `json:"most_up" pb:"2"`

	// MostDown is the largest number of messages that a server sent in one call.
	MostDown int64 `json:"most_down" pb:"3"`

	// Streams is the number of calls that their protocol marks as streams.
	Streams int64 `json:"streams" pb:"4"`
	// Protocols is the number of calls by protocol, such as Connect or gRPC.
	Protocols map[string]int64 `json:"protocols,omitempty" pb:"5"`
	// Choices are the types that users chose for fields of the method's messages.
	Choices chosenReadings `json:"choices,omitempty" pb:"6"`
}

// maxProtocols is the maximum number of protocol names of one method. There are eight protocols.
const maxProtocols = 32

// newMethodEvidence returns empty statistics of a method.
func newMethodEvidence() *methodEvidence {
	return &methodEvidence{Protocols: map[string]int64{}, Choices: chosenReadings{}}
}

// addExchange counts a call with up messages from the client and down messages from the server.
func (m *methodEvidence) addExchange(ex *decode.Exchange, up, down int64) {
	m.Calls++
	for dir, list := range ex.Choices {
		m.Choices.addChoices(captures.Direction(dir), list)
	}
	if len(m.Protocols) < maxProtocols || m.Protocols[string(ex.Protocol)] > 0 {
		m.Protocols[string(ex.Protocol)]++
	}
	if ex.Protocol == decode.ConnectStream || ex.Protocol == decode.SSE {
		m.Streams++
	}
	m.MostUp, m.MostDown = max(m.MostUp, up), max(m.MostDown, down)
}

// merge adds the statistics of other calls of the same method. o is unchanged.
func (m *methodEvidence) merge(o *methodEvidence) {
	m.Calls += o.Calls
	m.MostUp, m.MostDown = max(m.MostUp, o.MostUp), max(m.MostDown, o.MostDown)
	m.Streams += o.Streams
	for name, n := range o.Protocols {
		m.Protocols[name] += n
	}
	for path, typ := range o.Choices {
		m.Choices.keepChoice(path, typ)
	}
}

// clone returns a deep copy.
func (m *methodEvidence) clone() *methodEvidence {
	c := *m
	c.Protocols, c.Choices = maps.Clone(m.Protocols), maps.Clone(m.Choices)
	return &c
}

// half returns the part of the statistics that belongs to one direction. Merging both halves gives m.
func (m *methodEvidence) half(dir captures.Direction) *methodEvidence {
	h := newMethodEvidence()
	if dir == captures.Up {
		h.Calls, h.MostUp, h.Protocols = m.Calls, m.MostUp, maps.Clone(m.Protocols)
	} else {
		h.MostDown, h.Streams = m.MostDown, m.Streams
	}
	for path, typ := range m.Choices {
		if strings.HasPrefix(path, dir.String()+"/") {
			h.Choices[path] = typ
		}
	}
	return h
}

// streaming reports which side streams messages, as far as the recorded calls show it. If a client sent one
// message on a Connect stream, the method may or may not be client-streaming.
func (m *methodEvidence) streaming() (client, server bool) {
	return m.MostUp > 1, m.MostDown > 1 || m.Streams > 0
}

// methodRoot returns the name under which the messages of a method in one direction are counted (the root
// type): "/pkg.Service/Method:up".
func methodRoot(method string, dir captures.Direction) string {
	return "/" + method + ":" + dir.String()
}

// splitRoot is the inverse of methodRoot. ok is false if root is not the name of a method's messages.
func splitRoot(root string) (service, rpc string, dir captures.Direction, ok bool) {
	name, suffix, found := strings.Cut(strings.TrimPrefix(root, "/"), ":")
	service, rpc, named := strings.Cut(name, "/")
	if !found || !named || !strings.HasPrefix(root, "/") {
		return "", "", 0, false
	}
	if suffix == captures.Down.String() {
		dir = captures.Down
	}
	return service, rpc, dir, true
}
