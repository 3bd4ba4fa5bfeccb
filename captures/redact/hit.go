package redact

import "unwire/captures/redact/internal/match"

// A Hit describes a secret that a rule found: where it is, but not its value.
type Hit struct {
	// Rule is the rule that found the secret.
	Rule Rule

	// Name is the name of the parameter or JSON member that contains the secret, or the prefix of the API key;
	// else "".
	Name string

	// Header is the name of the header field with the secret; "" if the secret is not in a header.
	Header string

	// Off is the offset of the secret in the searched bytes.
	Off int
	// Len is the length of the secret in bytes.
	Len int
}

// A reporter is a function that is called with each secret that is found. It may be nil.
type reporter func(Hit)

// value reports the whole value v as a secret with the properties in h, unless v is a placeholder.
func (r reporter) value(h Hit, v string) {
	if r != nil && v != "" && !isPlaceholder(v) {
		h.Len = len(v)
		r(h)
	}
}

// match returns a function for scanner.see that reports each match to r. at is the offset of the searched text.
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

// mapped returns a reporter for hits in a decoded text. place converts the range of a hit to offsets in the
// encoded text, which are reported to r.
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
