package schema

import "slices"

// A message is the evidence of one message type at one path.
type message struct {
	samples int64 // messages of this type
	low     []*field
	high    map[int32]*field
}

// lowNumbers is the count of field numbers that are looked up without a map,
// and of those whose meetings are recorded.
const lowNumbers = 256

func (m *message) get(number int32) *field {
	if number < lowNumbers {
		if int(number) < len(m.low) {
			return m.low[number]
		}
		return nil
	}
	return m.high[number]
}

func (m *message) set(number int32, f *field) {
	if number >= lowNumbers {
		if m.high == nil {
			m.high = map[int32]*field{}
		}
		m.high[number] = f
		return
	}
	for int(number) >= len(m.low) {
		m.low = append(m.low, nil)
	}
	m.low[number] = f
}

// numbers returns the message's field numbers, ascending.
func (m *message) numbers() []int32 {
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
