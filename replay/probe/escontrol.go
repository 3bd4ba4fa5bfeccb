package probe

import "context"

// id is the index of a canary's id in the next request: other ones than in the
// last, so that who says the same to everything is found out.
func (m *esMessage) id(index int) int { return (index + m.asked*idStep) % assertion }

// read finds the index of the canary that an answer names.
func (m *esMessage) read(a *answer) (index int, s slot, illegal, ok bool) {
	index, s, illegal, ok = readCanary(a.message)
	if ok && index < assertion {
		index = ((index-m.asked*idStep)%assertion + assertion) % assertion
	}
	return index, s, illegal, ok
}

// control asks with no candidate, where the parser meets nothing but the end.
//
// Errors: a stopError where the answer does not name it; then nothing is claimed.
func (m *esMessage) control(ctx context.Context) error {
	if m.c.controlled {
		return nil
	}
	a, err := m.c.ask(ctx, m.at()+": no numbers", m.whole(appendEnd(nil, m.id(0))))
	if err != nil {
		return err
	}
	if index, s, _, ok := m.read(a); !ok || s != slotEnd || index != 0 {
		return oracleOff(a)
	}
	m.c.controlled = true
	return nil
}
