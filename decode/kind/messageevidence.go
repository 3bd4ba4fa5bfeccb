package kind

import "slices"

// A Message is the evidence of one message type at one path.
type Message struct {
	Samples int64 // messages of this type
	low     []*Field
	high    map[int32]*Field
}

// LowNumbers is the count of field numbers that are looked up without a map,
// and of those whose meetings are recorded.
const LowNumbers = 256

// Field returns the evidence of a field, or nil.
func (m *Message) Field(number int32) *Field {
	if number < LowNumbers {
		if int(number) < len(m.low) {
			return m.low[number]
		}
		return nil
	}
	return m.high[number]
}

func (m *Message) set(number int32, f *Field) {
	if number >= LowNumbers {
		if m.high == nil {
			m.high = map[int32]*Field{}
		}
		m.high[number] = f
		return
	}
	if size := int(number) + 1; size > len(m.low) {
		m.low = slices.Grow(m.low, size-len(m.low))[:size]
	}
	m.low[number] = f
}

// Numbers returns the message's field numbers, ascending.
func (m *Message) Numbers() []int32 {
	var list []int32
	for n, f := range m.low {
		if f != nil {
			list = append(list, int32(n))
		}
	}
	high := len(list)
	for n := range m.high {
		list = append(list, n)
	}
	slices.Sort(list[high:])
	return list
}
