package infer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"unwire/captures/profile"
	"unwire/decode/kind"
	"unwire/schema/infer/jsonshape"
	"unwire/schema/infer/sources"
)

// evidenceFormat is the version of Evidence's own JSON. It is not that of the
// contract's evidence list, which is made of FieldEvidence (Inferred.WriteEvidence).
const evidenceFormat = 2

// maxEvidenceBytes bounds the JSON that ReadEvidence takes; 100,000 fields need a tenth of it.
const maxEvidenceBytes = 512 << 20

// maxCount bounds every number read from JSON, so that merging thousands of
// such files does not overflow.
const maxCount = 1 << 52

type evidenceDoc struct {
	Format int `json:"unwire_evidence"`
	kind.Doc
	Methods map[string]*methodEvidence `json:"methods,omitempty"`
	Sources *sources.Set               `json:"sources,omitempty"`
	JSON    *jsonshape.Set             `json:"json,omitempty"`
}

// doc is the evidence for JSON, whose examples have lost what may be secrets. The
// same evidence is the same JSON.
func (e *Evidence) doc(p *profile.Profile) *evidenceDoc {
	e.kinds.Redact(newHider(p).hide)
	d := &evidenceDoc{Format: evidenceFormat, Doc: e.kinds.Doc(), Methods: e.methods}
	if len(e.sources.Hashes) > 0 {
		d.Sources = &e.sources
	}
	if e.json.Len() > 0 {
		d.JSON = e.json
	}
	return d
}

// ReadEvidence reads what Inferred.WriteEvidence wrote, perhaps by another
// program, or its member "evidence" alone.
//
// Limits: 512 MiB, and those of Evidence.
// Errors: names the field whose numbers no traffic can have left.
func ReadEvidence(r io.Reader) (*Evidence, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxEvidenceBytes+1))
	if err != nil {
		return nil, fmt.Errorf("schema: evidence: %w", err)
	}
	if len(b) > maxEvidenceBytes {
		return nil, fmt.Errorf("schema: evidence: more than %d bytes", maxEvidenceBytes)
	}
	var list struct {
		evidenceDoc
		Evidence *evidenceDoc `json:"evidence"` // beside the list of fields
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("schema: evidence: %w", err)
	}
	doc := list.evidenceDoc
	if list.Evidence != nil {
		doc = *list.Evidence
	}
	if doc.Format != evidenceFormat {
		return nil, fmt.Errorf("schema: evidence: format %d, this program reads %d", doc.Format, evidenceFormat)
	}
	e := NewEvidence()
	if e.kinds, err = doc.Evidence(); err != nil {
		return nil, fmt.Errorf("schema: evidence: %w", err)
	}
	if doc.Sources != nil {
		if err := doc.Sources.Check(); err != nil {
			return nil, fmt.Errorf("schema: evidence: %w", err)
		}
		e.sources = *doc.Sources
	}
	if doc.JSON != nil {
		e.json = doc.JSON
	}
	if err := e.readMethods(doc.Methods); err != nil {
		return nil, fmt.Errorf("schema: evidence: %w", err)
	}
	return e, nil
}

// ReadEvidenceFile reads a file of evidence. Of another file, and of one that is not
// regular or cannot be opened, it returns nil.
func ReadEvidenceFile(name string) (*Evidence, error) {
	f, err := os.Open(name)
	if err != nil {
		// Who reads it as something else reports that.
		return nil, nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	head := make([]byte, evidenceHead)
	n, _ := io.ReadFull(f, head)
	if head = head[:n]; !maybeEvidence(head) {
		return nil, nil
	}
	rest, err := io.ReadAll(io.LimitReader(f, maxEvidenceBytes+1))
	if err != nil {
		return nil, err
	}
	return parseEvidence(name, append(head, rest...))
}

// evidenceHead is how many bytes tell that a file may be evidence.
const evidenceHead = 64

// maybeEvidence looks at the beginning of a file.
func maybeEvidence(head []byte) bool {
	head, found := bytes.CutPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{"))
	head = bytes.TrimLeft(head, " \t\r\n")
	return found && (bytes.HasPrefix(head, []byte(`"unwire_evidence"`)) || bytes.HasPrefix(head, []byte(`"v"`)))
}

// parseEvidence reads evidence from the file called name; of something else it
// returns nil.
func parseEvidence(name string, data []byte) (*Evidence, error) {
	if !maybeEvidence(data[:min(len(data), evidenceHead)]) || !bytes.Contains(data, []byte(`"unwire_evidence"`)) {
		return nil, nil
	}
	ev, err := ReadEvidence(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return ev, nil
}

func (e *Evidence) readMethods(methods map[string]*methodEvidence) error {
	if len(methods) > maxRoots {
		return fmt.Errorf("more than %d methods", maxRoots)
	}
	for name, m := range methods {
		if m == nil || !countsValid(m.Calls, m.MostUp, m.MostDown, m.Streams) || len(m.Protocols) > maxProtocols || len(m.Choices) > maxChoices {
			return fmt.Errorf("method %q: counts out of range", name)
		}
		c := m.clone()
		if c.Protocols == nil {
			c.Protocols = map[string]int64{}
		}
		if c.Choices == nil {
			c.Choices = choosings{}
		}
		for _, n := range c.Protocols {
			if !countsValid(n) {
				return fmt.Errorf("method %q: counts out of range", name)
			}
		}
		e.methods[name] = c
	}
	return nil
}

func countsValid(list ...int64) bool {
	for _, n := range list {
		if n < 0 || n > maxCount {
			return false
		}
	}
	return true
}
