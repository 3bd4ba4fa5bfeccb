package probe

import (
	"context"
	"fmt"
	"slices"
)

// reachES makes sure that a path leads to a message: what is wrapped in
// anything else is read as something else. It returns the places of groups in it.
//
// Shape: known holds what was asked already, by path.
func reachES(ctx context.Context, c *client, o *Options, res *Result, path []int32, known map[string]*esMessage) (groups []int, ok bool, err error) {
	for i, n := range path {
		at := pathText(path[:i+1])
		m := known[at]
		if m == nil {
			m = newESMessage(c, o, path[:i], []Range{{n, n}})
			m.groups = groups
			if err := m.run(ctx); err != nil {
				return nil, false, err
			}
			if err := m.measure(ctx); err != nil {
				return nil, false, err
			}
			if f := m.found[n]; f != nil && f.slot == slotVarint && !f.level && len(o.Questions) == 0 && below(o.Numbers, n) == n {
				// One number is little to tell a message by: its neighbours are more.
				m = newESMessage(c, o, path[:i], o.Numbers)
				m.groups = groups
				if err := m.run(ctx); err != nil {
					return nil, false, err
				}
			}
			known[at] = m
		}
		f := m.found[n]
		switch {
		case f != nil && f.group:
			groups = append(slices.Clone(groups), i)
		case f == nil || f.slot != slotMessage && f.slot != slotMap && !(f.slot == slotVarint && m.hints[n].Len):
			res.note(fmt.Sprintf("%s is no message, as far as the server tells: nothing below it was asked", at))
			return nil, false, nil
		}
	}
	return groups, true, nil
}

// reachGo makes sure that a path leads to a message, with what ends a request
// if that is known.
func reachGo(ctx context.Context, c *client, res *Result, path []int32, poison []byte) (bool, error) {
	for i, n := range path {
		m := &goMessage{c: c, path: path[:i], poison: poison}
		tests := goTests()
		text, _, err := m.test(ctx, tests[0], []int32{n})
		if err != nil {
			return false, err
		}
		message := poison == nil
		if !text && !message {
			if message, _, err = m.test(ctx, tests[1], []int32{n}); err != nil {
				return false, err
			}
		}
		if text || !message {
			res.note(fmt.Sprintf("%s is no message, as far as the server tells: nothing below it was asked", pathText(path[:i+1])))
			return false, nil
		}
	}
	return true, nil
}
