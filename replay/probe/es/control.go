package es

import (
	"context"

	"unwire/replay/probe"
)

// id is the index of a canary's id in the next request: other ones than in the
// last, so that who says the same to everything is found out.
func (m *message) id(index int) int { return (index + m.asked*idStep) % controlIndex }

// read finds the index of the canary that an answer names.
func (m *message) read(a *probe.Answer) sighting {
	g := readCanary(a.Text)
	if g.canary && g.index < controlIndex {
		g.index = ((g.index-m.asked*idStep)%controlIndex + controlIndex) % controlIndex
	}
	return g
}

// control asks about a number that cannot exist, once for each path, before an
// answer that names no canary is believed.
//
// Errors: a stopError if the answer does not name the end; then nothing is
// claimed of the message.
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
