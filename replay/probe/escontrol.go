package probe

import "context"

// id is the index of a canary's id in the next request: other ones than in the
// last, so that who says the same to everything is found out.
func (m *esMessage) id(index int) int { return (index + m.asked*idStep) % controlIndex }

// read finds the index of the canary that an answer names.
func (m *esMessage) read(a *answer) (index int, s slot, illegal, ok bool) {
	index, s, illegal, ok = readCanary(a.message)
	if ok && index < controlIndex {
		index = ((index-m.asked*idStep)%controlIndex + controlIndex) % controlIndex
	}
	return index, s, illegal, ok
}

// control asks about a number that cannot exist, once for each path, before an
// answer that names no canary is believed.
//
// Errors: a stopError if the answer does not name the end; then nothing is
// claimed of the message.
func (m *esMessage) control(ctx context.Context) error {
	if m.c.controlled[pathText(m.path)] {
		return nil
	}
	a, err := m.c.ask(ctx, m.at()+": a number that cannot exist", m.whole(appendEnd(appendControl(nil), m.id(0))))
	if err != nil {
		return err
	}
	if index, s, _, ok := m.read(a); !ok || s != slotEnd || index != 0 {
		return oracleOffAt(m.path, a)
	}
	m.c.controlled[pathText(m.path)] = true
	return nil
}
