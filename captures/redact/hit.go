package redact

import "unwire/captures/redact/internal/match"

// A Hit is a secret that the rules find, without its value.
type Hit struct {
	Rule Rule

	// Name is that of the parameter or member; of a shape, what it begins with; else "".
	Name string

	// Header is that of the field, of a hit in the value of a header field; else "".
	Header string

	Off int // in what was searched
	Len int // bytes
}

// A reporter is called with each secret that is found; it may be nil.
type reporter func(Hit)

// value reports v, unless it is a placeholder.
func (r reporter) value(h Hit, v string) {
	if r != nil && v != "" && !isPlaceholder(v) {
		h.Len = len(v)
		r(h)
	}
}

// match returns what a scanner is to tell r of matches in a text at offset at.
func (r reporter) match(at int) func(m match.Match, base int64) {
	if r == nil {
		return nil
	}
	return func(m match.Match, base int64) {
		if m.End > m.Start && !isPlaceholder(m.Secret) {
			r(Hit{Rule: m.Rule, Name: m.Name, Off: at + int(base) + m.Start, Len: m.End - m.Start})
		}
	}
}

// mapped returns a reporter for a text that was decoded: place returns where
// the bytes of a hit stand in what r knows.
func (r reporter) mapped(place func(from, to int) (int, int)) reporter {
	if r == nil {
		return nil
	}
	return func(h Hit) {
		from, to := place(h.Off, h.Off+h.Len)
		h.Off, h.Len = from, to-from
		r(h)
	}
}
