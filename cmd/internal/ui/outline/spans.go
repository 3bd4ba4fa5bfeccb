package outline

// A Class says which part of a row bytes are.
type Class string

const (
	// key is a tag, the end tag of a group, or the name of a member.
	key Class = "key"

	// lengthPrefix is the length of a value.
	lengthPrefix Class = "length"

	// value is a value without rows inside it.
	value Class = "value"
)

// A Span is a range of bytes that belong to one row and class.
type Span struct {
	// From is the offset of the first byte in the layer.
	From int `json:"from"`

	// To is the offset after the last byte.
	To int `json:"to"`

	// Row is the innermost row that has the bytes.
	Row int32 `json:"row"`

	// Class is the part of the row; "" for JSON punctuation.
	Class Class `json:"class,omitempty"`
}

// Spans returns the spans of the bytes [from,to) of a layer. Bytes that belong to no row are left out.
func (o *Outline) Spans(layer int32, from, to int) []Span {
	var out []Span
	o.each(layer, from, to, func(s Span) bool {
		s.From, s.To = max(s.From, from), min(s.To, to)
		if s.From < s.To {
			out = append(out, s)
		}
		return true
	})
	return out
}

// At returns the innermost row that has the byte at an offset of a layer, or -1.
func (o *Outline) At(layer int32, off int) int32 {
	row := int32(-1)
	o.each(layer, off, off+1, func(s Span) bool {
		if s.From <= off && off < s.To {
			row = s.Row
			return false
		}
		return true
	})
	return row
}

// each calls do with the spans of a layer that overlap [from,to), in order, until do returns false.
func (o *Outline) each(layer int32, from, to int, do func(Span) bool) {
	first, last := int32(0), int32(len(o.Rows))-1
	if carrier := o.Layers[layer].Row; carrier >= 0 {
		first, last = carrier+1, o.Rows[carrier].Last
	}
	var ends []int32 // open parents, whose last bytes follow their rows
	at := func(end int32, s int) bool {
		for len(ends) > 0 && o.Rows[ends[len(ends)-1]].Last < end {
			p := ends[len(ends)-1]
			ends = ends[:len(ends)-1]
			tail := o.tail(p)
			if tail.From < tail.To && tail.From < to && tail.To > from && !do(tail) {
				return false
			}
		}
		return s < to
	}
	for i := first; i <= last; {
		r := &o.Rows[i]
		if r.Layer != layer { // rows of a layer inside this one
			i = r.Last + 1
			continue
		}
		if r.End <= from {
			i = r.Last + 1
			continue
		}
		if !at(i, r.Off) {
			break
		}
		inside := r.Last > i && r.Opens == 0
		if !o.eachOf(i, inside, do) {
			return
		}
		if inside {
			ends = append(ends, i)
			i++
		} else {
			i = r.Last + 1
		}
	}
	at(last+1, from)
}

// eachOf calls do with the spans of row i that precede the rows inside it. inside is whether there are
// such rows in the same layer. It returns false if do does.
func (o *Outline) eachOf(i int32, inside bool, do func(Span) bool) bool {
	r := &o.Rows[i]
	if r.Off < r.Tag && !do(Span{r.Off, r.Tag, i, key}) {
		return false
	}
	if r.Tag < r.Val {
		class := lengthPrefix
		if r.Field == nil {
			class = "" // the colon
		}
		if !do(Span{r.Tag, r.Val, i, class}) {
			return false
		}
	}
	if inside {
		next := &o.Rows[i+1]
		return next.Off <= r.Val || do(Span{r.Val, next.Off, i, ""})
	}
	return r.Val >= r.End || do(Span{r.Val, r.End, i, value})
}

// tail returns the span after the last row inside row i: the end tag of a group, or a bracket.
func (o *Outline) tail(i int32) Span {
	r := &o.Rows[i]
	k := i + 1
	end := r.Val
	for k <= r.Last {
		end = max(end, o.Rows[k].End)
		k = o.Rows[k].Last + 1
	}
	s := Span{end, r.End, i, ""}
	if r.Field != nil {
		s.Class = key
	}
	return s
}
