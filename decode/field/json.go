package field

import "strconv"

// MarshalJSON encodes f in the documented order of members, without empty optional members. It avoids
// encoding/json's reflection, because a message may have millions of fields.
func (f *Field) MarshalJSON() ([]byte, error) {
	return f.appendJSON(nil), nil
}

// appendJSON appends the JSON form of the field, which MarshalJSON returns, to b.
func (f *Field) appendJSON(b []byte) []byte {
	b = f.AppendBeforeFields(b)

	// An empty message has an empty list, a leaf has none.
	if f.Fields != nil {
		b = append(b, `,"fields":[`...)
		for i, child := range f.Fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = child.appendJSON(b)
		}
		b = append(b, ']')
	}
	if f.Cut != nil {
		b = f.Cut.appendJSON(append(b, `,"cut":`...))
	}
	return f.AppendAfterFields(b)
}

// AppendBeforeFields appends the beginning of the JSON object that MarshalJSON returns: everything before the members
// "fields" and "cut". A caller that decodes these while it writes them appends them next, and then calls
// AppendAfterFields.
func (f *Field) AppendBeforeFields(b []byte) []byte {
	b = f.appendPlace(b)
	b = appendInt(append(b, `,"val":`...), f.Val)
	b = appendString(append(b, `,"kind":`...), f.Kind)
	b = appendString(append(b, `,"type":`...), f.Type)

	// Optional members follow in the documented order.
	if f.Value != nil {
		b = appendValue(append(b, `,"value":`...), f.Value)
	}
	b = appendText(b, `,"symbol":`, f.Symbol)
	b = appendText(b, `,"form":`, f.Form)
	b = appendText(b, `,"shape":`, f.Shape)
	b = f.appendShapeP(b)
	b = appendText(b, `,"note":`, f.Note)
	b = f.appendChosen(b)
	b = appendFinite(append(b, `,"p":`...), f.P, 64)
	return f.appendAlternatives(b)
}

// AppendAfterFields appends the end of the JSON object that AppendBeforeFields began.
func (f *Field) AppendAfterFields(b []byte) []byte {
	return append(appendText(b, `,"error":`, f.Error), '}')
}

// AppendHead appends the beginning of f's JSON object for `unwire decode --format json`: everything before its
// value or its fields, and no closing brace. The caller streams the rest while it parses. The object has the
// members that Append needs. Unlike MarshalJSON, it omits a P of 0, an empty list of alternatives, and the
// value's offset.
func (f *Field) AppendHead(b []byte) []byte {
	b = f.appendPlace(b)
	b = append(append(append(b, `,"kind":"`...), f.Kind...), '"')
	if f.Type != "" {
		b = append(append(append(b, `,"type":"`...), f.Type...), '"')
	}
	if f.P != 0 {
		b = appendFinite(append(b, `,"p":`...), f.P, 64)
	}

	// Deviations from the canonical encoding.
	b = appendCount(b, `,"long_tag":`, f.LongTag)
	b = appendCount(b, `,"long_len":`, f.LongLen)
	b = appendCount(b, `,"long_value":`, f.LongValue)
	b = appendCount(b, `,"long_end":`, f.LongEnd)
	if f.Open {
		b = append(b, `,"open":true`...)
	}

	b = f.appendChosen(b)
	if len(f.Alternatives) > 0 {
		b = f.appendAlternatives(b)
	}
	b = appendText(b, `,"form":`, f.Form)
	b = appendText(b, `,"shape":`, f.Shape)
	b = appendText(b, `,"note":`, f.Note)
	b = f.appendShapeP(b)
	return appendText(b, `,"error":`, f.Error)
}

// appendPlace appends the opening brace and the members that identify the field and its position.
func (f *Field) appendPlace(b []byte) []byte {
	b = strconv.AppendUint(append(b, `{"n":`...), f.N, 10)
	b = appendText(b, `,"name":`, f.Name)
	b = append(append(append(b, `,"wire":"`...), f.Wire...), '"')
	b = appendInt(append(b, `,"off":`...), f.Off)
	return appendInt(append(b, `,"len":`...), f.Len)
}

// appendShapeP appends the JSON member with the shape's probability, if there is one.
func (f *Field) appendShapeP(b []byte) []byte {
	if f.ShapeP <= 0 {
		return b
	}
	return appendFinite(append(b, `,"shape_p":`...), f.ShapeP, 64)
}

// appendChosen appends the JSON member "chosen" if a user chose the type.
func (f *Field) appendChosen(b []byte) []byte {
	if !f.Chosen {
		return b
	}
	return append(b, `,"chosen":true`...)
}

// appendAlternatives appends the list of alternatives, even an empty one.
func (f *Field) appendAlternatives(b []byte) []byte {
	b = append(b, `,"alternatives":[`...)
	for i, a := range f.Alternatives {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, `{"kind":"`...), a.Kind...), `","type":"`...)
		b = append(append(b, a.Type...), `","p":`...)
		b = append(appendFinite(b, a.P, 64), '}')
	}
	return append(b, ']')
}

// appendText appends a string member unless it is empty. member is the comma, the quoted name and the colon.
func appendText(b []byte, member, s string) []byte {
	if s == "" {
		return b
	}
	return appendString(append(b, member...), s)
}

// appendCount appends a JSON member with a number, unless it is zero.
func appendCount(b []byte, member string, v int) []byte {
	if v == 0 {
		return b
	}
	return appendInt(append(b, member...), v)
}

// appendInt appends the integer v in decimal.
func appendInt(b []byte, v int) []byte { return strconv.AppendInt(b, int64(v), 10) }
