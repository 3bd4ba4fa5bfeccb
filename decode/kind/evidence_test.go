package kind

// fieldAt returns the evidence of the field at path below m, payloads read as
// messages, or nil where nothing was seen.
func fieldAt(m *Message, path ...int32) *Field {
	var f *Field
	for i, n := range path {
		if m == nil {
			return nil
		}
		if f = m.Field(n); f == nil || i == len(path)-1 {
			return f
		}
		if m = f.Child; m == nil {
			m = f.Group
		}
	}
	return f
}
