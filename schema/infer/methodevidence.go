package infer

import (
	"maps"
	"strings"

	"unwire/captures"
	"unwire/decode"
)

// methodEvidence is what was seen of a method's calls.
type methodEvidence struct {
	Calls int64 `json:"calls"`

	// messages in one call, at most
	MostUp int64 `json:"most_up"`

	// of the server
	MostDown int64 `json:"most_down"`

	// calls whose protocol tells a stream from a unary call
	Streams   int64            `json:"streams"`
	Protocols map[string]int64 `json:"protocols,omitempty"`
	Choices   choosings        `json:"choices,omitempty"`
}

// maxProtocols bounds the protocol names of one method; there are eight.
const maxProtocols = 32

func newMethodEvidence() *methodEvidence {
	return &methodEvidence{Protocols: map[string]int64{}, Choices: choosings{}}
}

// addExchange enters an exchange of so many messages.
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

func (m *methodEvidence) clone() *methodEvidence {
	c := *m
	c.Protocols, c.Choices = maps.Clone(m.Protocols), maps.Clone(m.Choices)
	return &c
}

// streaming is the method's kind as far as its calls tell: a Connect stream
// whose client sent one message may still be a stream of the client's.
func (m *methodEvidence) streaming() (client, server bool) {
	return m.MostUp > 1, m.MostDown > 1 || m.Streams > 0
}

// methodRoot is the root under which a method's messages are pooled.
func methodRoot(method string, dir captures.Direction) string {
	return "/" + method + ":" + dir.String()
}

// splitRoot is the inverse of methodRoot.
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
