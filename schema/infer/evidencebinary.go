package infer

import (
	"bytes"
	"fmt"
	"io"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/decode/kind"
	"unwire/schema/infer/protostruct"
	"unwire/schema/infer/sources"
)

// evidenceMagic is the value of the first field of stored evidence in binary form, by which a file is
// recognized.
const evidenceMagic = "unwire evidence"

// isBinary reports whether data begins like stored evidence in binary form, i.e. with evidenceMagic.
func isBinary(data []byte) bool {
	head, ok := bytes.CutPrefix(data, []byte{1<<3 | 2, byte(len(evidenceMagic))})
	return ok && bytes.HasPrefix(head, []byte(evidenceMagic))
}

// AppendBinary appends the compact binary form of the evidence to b. Secrets of the profile p (which may be
// nil) are removed from examples. Equal evidence gives equal bytes.
//
// Shape: a message unwire.evidence.v2.Evidence, as in evidence.proto in this folder.
func (e *Evidence) AppendBinary(b []byte, p *profile.Profile) ([]byte, error) {
	doc := e.doc(p)
	doc.Magic = evidenceMagic
	b, err := protostruct.Append(b, doc)
	if err != nil {
		return b, fmt.Errorf("schema: %w", err)
	}
	return b, nil
}

// WriteBinary writes the evidence in its compact binary form, which ReadEvidence reads.
func (in *Inferred) WriteBinary(w io.Writer) error {
	b, err := in.evidence.AppendBinary(nil, in.profile)
	if err != nil {
		return err
	}
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	return nil
}

// readBinary decodes stored evidence in binary form.
func readBinary(b []byte) (*evidenceDoc, error) {
	doc := new(evidenceDoc)
	return doc, protostruct.Unmarshal(b, doc, protostruct.Limits{})
}

// SetPart declares that all messages of the evidence are of the part p and come from one segment of a
// recording. segment is a hash of the segment's content.
func (e *Evidence) SetPart(p sources.Part, segment []byte) {
	e.parts = sources.Parts{{Part: p, Segments: [][]byte{segment}}}
}

// Parts returns the segments of recordings from which each part of the evidence was computed. Only evidence of
// a pipeline has parts.
func (e *Evidence) Parts() sources.Parts { return e.parts }

// DropParts removes the record of the segments from which the evidence comes. The result equals evidence
// gathered from the same captures at once.
func (e *Evidence) DropParts() { e.parts = nil }

// Split divides the evidence by method and direction; message types that belong to no method are
// separate. Merging all results gives the original evidence. The results share memory with e and must
// not be changed.
//
// Shape: part has the properties that all results share, such as the client. Properties of a whole
// method are in one direction only: the number of calls in the requests' part, the kind of stream in
// the responses' part. Inputs without messages are in a part whose method and direction are those of
// part.
func (e *Evidence) Split(part sources.Part) (map[sources.Part]*Evidence, error) {
	split := map[sources.Part]*Evidence{}
	at := func(method, direction string) *Evidence {
		p := part
		p.Method, p.Direction = method, direction
		ev := split[p]
		if ev == nil {
			ev = NewEvidence()
			ev.sources = e.sources
			split[p] = ev
		}
		return ev
	}

	// A root type is a method's messages of one direction, or a type by its own name.
	doc := e.kinds.Doc()
	for root := range doc.Roots {
		name, dir := root, ""
		if service, rpc, d, ok := splitRoot(root); ok {
			name, dir = service+"/"+rpc, d.String()
		}
		one := kind.Doc{Roots: only(doc.Roots, root), Cut: doc.Cut}
		kinds, err := one.Evidence()
		if err != nil {
			return nil, fmt.Errorf("schema: evidence of %s: %w", root, err)
		}
		at(name, dir).kinds.Merge(kinds)
	}

	for _, place := range e.json.Places() {
		at(place, "").json.Merge(e.json.Part(place))
	}
	for name, m := range e.methods {
		at(name, captures.Up.String()).methods[name] = m.half(captures.Up)
		at(name, captures.Down.String()).methods[name] = m.half(captures.Down)
	}
	if len(split) == 0 && len(e.sources.Hashes) > 0 {
		at(part.Method, part.Direction)
	}
	return split, nil
}

// only returns a map with just the entry for key, or an empty map if m lacks it.
func only[M ~map[K]V, K comparable, V any](m M, key K) M { return M{key: m[key]} }
