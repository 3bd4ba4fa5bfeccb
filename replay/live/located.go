package live

import (
	"unwire/captures"
	"unwire/decode"
	"unwire/decode/transcript/ident"
	"unwire/replay/live/values"
)

// maxLocated is the number of identifiers that are listed of one message.
const maxLocated = 1000

// HeaderIDs returns the identifiers in headers by their position, which begins with the name of the header in lower
// case. In headers, names with digits count as identifiers too.
//
// Limits: the first 1,000 identifiers.
func HeaderIDs(headers captures.Headers) map[string]string {
	h := parseHeaders(headers)
	if h == nil {
		return nil
	}
	return locate(h.leaves, true)
}

// MessageIDs returns the identifiers in a message by their position: the path of a value, and the part of the value.
// Two messages of one type have corresponding identifiers at the same positions. Numbers of fewer than 15 digits and times
// are not identifiers.
//
// Limits: the first 1,000 identifiers.
func MessageIDs(f *decode.Frame) map[string]string {
	return locate(values.Leaves(f, nil), false)
}

// locate returns the identifiers in leaves by their position. names means that names with digits count too.
func locate(leaves []values.Leaf, names bool) map[string]string {
	out := map[string]string{}
	budget := values.Budget(values.MaxTraced)
	for k := range leaves {
		v := &leaves[k]
		v.Budget = &budget
		for _, p := range v.Parts() {
			class := values.ClassOf(p.Value)
			if class == ident.Time || class == "" && !p.ID && !(names && p.At == "" && isName(p.Value)) {
				continue
			}
			if len(out) >= maxLocated {
				return out
			}
			out[v.Path+" "+p.At] = p.Value
		}
	}
	return out
}
