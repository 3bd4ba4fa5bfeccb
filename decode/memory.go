package decode

import (
	"math"

	"unwire/decode/field"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// A Memory has what a View needs to decode one message, so that it need not be allocated again for the next one. The
// zero value is ready to use.
type Memory struct {
	// free is the reader of an earlier message that was decoded completely; nil for none. It infers types with
	// evidence.
	free     *kind.Reader
	evidence *kind.Pooled

	// types are the types of fields that were decoded before, by the last bits of the field's number. The elements of
	// a repeated field all have the same.
	types [16]decodedTypes
}

// A decodedTypes is the list of a field's possible types in the form in which a field.Field has it.
type decodedTypes struct {
	// of is the first element of the list that the reader returned; nil for none. The reader may return the same list
	// for many fields.
	of *kind.Reading

	// p is the probability of the first type, and alternatives are the others.
	p            float64
	alternatives []field.Alternative
}

// reader returns a reader of message t with evidence, which may be nil. It reuses that of an earlier message that needs
// it no more.
func (m *Memory) reader(t *wire.Tree, evidence *kind.Pooled) *kind.Reader {
	r := m.free
	if r == nil || m.evidence != evidence {
		return evidence.NewReader(t)
	}
	// Lists of the earlier message may be overwritten.
	m.free, m.types = nil, [len(m.types)]decodedTypes{}
	r.Reset(t)
	return r
}

// setReadings sets in f the value and the probability of node i's most probable type, and the other candidate types as
// alternatives.
func (m *Memory) setReadings(f *field.Field, r *kind.Reader, i int32) {
	list := r.Types(i)
	best := &list[0]
	d := &m.types[f.N%uint64(len(m.types))]
	if d.of != best {
		*d = decodedTypes{of: best, p: round(best.P), alternatives: make([]field.Alternative, 0, len(list)-1)}
		for _, other := range list[1:] {
			d.alternatives = append(d.alternatives, field.Alternative{Kind: string(other.Kind), Type: other.Type, P: round(other.P)})
		}
	}
	f.Kind, f.Type, f.P, f.Value, f.Alternatives = string(best.Kind), best.Type, d.p, field.JSONValue(r.Value(i, best.Type)), d.alternatives
}

// round rounds a probability to four decimals, as in JSON output.
func round(p float64) float64 { return math.Round(p*1e4) / 1e4 }
