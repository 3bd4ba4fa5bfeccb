package es

import (
	"context"

	"unwire/replay/probe"
)

// id returns the field number of the canary with the given index in the next request. A canary is an illegal tag that
// the server's error message repeats. The numbers change between requests, which reveals servers that answer every
// request alike.
func (m *message) id(index int) int { return (index + m.asked*idStep) % controlIndex }

// read returns what an error response reveals about the canaries of the last request, i.e. about the
// illegal tags by which the probe recognises where the parser stopped.
func (m *message) read(a *probe.Answer) sighting {
	g := readCanary(a.Text)
	if g.canary && g.index < controlIndex {
		g.index = ((g.index-m.asked*idStep)%controlIndex + controlIndex) % controlIndex
	}
	return g
}

// control tests a field number that cannot exist, once for each path, before a response without a
// canary is trusted.
//
// Errors: a stopError if the error message does not quote the end of the payload; nothing is then
// reported about the message.
func (m *message) control(ctx context.Context) error {
	if m.server.controlled[probe.PathText(m.path)] {
		return nil
	}
	a, err := m.server.Ask(ctx, m.at()+": a number that cannot exist", m.whole(appendEnd(appendControl(nil), m.id(0))))
	if err != nil {
		return err
	}
	if !m.read(a).isEnd(0) {
		return probe.OracleOff(m.path, a)
	}
	m.server.controlled[probe.PathText(m.path)] = true
	return nil
}
