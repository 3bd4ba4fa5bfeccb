package kind

import "slices"

// A Message holds the statistics of a message type: of all messages at one path of field numbers.
type Message struct {
	// Samples is the number of messages that were added.
	Samples int64

	// low has the statistics of the fields whose number is less than LowNumbers, by field number; nil for fields
	// that did not occur.
	low []*Field

	// high has the statistics of the other fields, by field number.
	high map[int32]*Field
}

// LowNumbers is the limit of low field numbers: fields below it are stored in a slice, others in a map. Only
// numbers below it are recorded in Field.Before.
const LowNumbers = 256

// Field returns the statistics of a field, or nil.
func (m *Message) Field(number int32) *Field {
	if number < LowNumbers {
		if int(number) < len(m.low) {
			return m.low[number]
		}
		return nil
	}
	return m.high[number]
}

// set stores the statistics of the field with a number.
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

// Numbers returns the field numbers in ascending order.
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
