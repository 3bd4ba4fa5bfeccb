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

// evidenceFormat is the version of the stored form of Evidence, in JSON and in binary. The list of fields that
// Inferred.WriteEvidence writes, too (FieldEvidence), has a version of its own.
const evidenceFormat = 2

// maxEvidenceBytes is the maximum size in bytes of stored evidence. Evidence of 50,000 fields needs a twentieth of
// it.
const maxEvidenceBytes = 512 << 20

// maxCount is the maximum of each number in stored evidence, so that merging thousands of files cannot overflow
// an int64.
const maxCount = 1 << 52

// An evidenceDoc is the stored form of Evidence: in JSON, and in protobuf with the field numbers of
// evidence.proto.
type evidenceDoc struct {
	// Magic identifies the binary format; it is its first field, with the value evidenceMagic.
	Magic string `json:"-" pb:"1"`
	// Format is the version of the format, evidenceFormat.
	Format int `json:"unwire_evidence" pb:"2"`

	// Doc has the statistics of the fields of all messages. The embedding puts its members on the level of the
	// evidence document.
	kind.Doc
	// Methods has the statistics of the calls of each RPC method, by "service/rpc".
	Methods map[string]*methodEvidence `json:"methods,omitempty" pb:"5"`
	// Sources are the inputs that were counted.
	Sources *sources.Set `json:"sources,omitempty" pb:"6"`
	// JSON summarizes the structure of messages in JSON.
	JSON jsonshape.Doc `json:"json,omitempty" pb:"7"`
	// Parts are the segments of recordings that were counted, if a pipeline computed the evidence.
	Parts sources.Parts `json:"parts,omitempty" pb:"8"`
}

// doc returns the stored form of the evidence, with secrets of the profile p removed from the examples. Equal
// evidence has equal forms.
func (e *Evidence) doc(p *profile.Profile) *evidenceDoc {
	e.kinds.Redact(newExampleRedactor(p).hide)
	d := &evidenceDoc{Format: evidenceFormat, Doc: e.kinds.Doc(), Methods: e.methods, JSON: e.json.Doc(), Parts: e.parts}
	if len(e.sources.Hashes) > 0 {
		d.Sources = &e.sources
	}
	return d
}

// ReadEvidence reads stored evidence: the output of Inferred.WriteEvidence or its member "evidence" alone
// (JSON), or the output of Inferred.WriteBinary or Evidence.AppendBinary. The file may come from somebody else,
// so it is validated.
//
// Limits: 512 MiB, and those of Evidence.
// Errors: the format or version differs, or a field has counts that no traffic can produce; the error names the
// field.
func ReadEvidence(r io.Reader) (*Evidence, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxEvidenceBytes+1))
	if err != nil {
		return nil, fmt.Errorf("schema: the evidence file (statistics about fields) is malformed: %w", err)
	}
	if len(b) > maxEvidenceBytes {
		return nil, fmt.Errorf("schema: the evidence has more than %d bytes", maxEvidenceBytes)
	}
	read := readJSON
	if isBinary(b) {
		read = readBinary
	}
	doc, err := read(b)
	if err == nil && doc.Format != evidenceFormat {
		err = fmt.Errorf("its format is %d, but this version of unwire reads format %d", doc.Format, evidenceFormat)
	}
	var e *Evidence
	if err == nil {
		e, err = doc.evidence()
	}
	if err != nil {
		return nil, fmt.Errorf("schema: the evidence file (statistics about fields) is malformed: %w", err)
	}
	return e, nil
}

// readJSON decodes stored evidence in JSON.
func readJSON(b []byte) (*evidenceDoc, error) {
	var list struct {
		evidenceDoc
		// Evidence is set in the output of WriteEvidence, where it follows the list of fields.
		Evidence *evidenceDoc `json:"evidence"`
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, err
	}
	if list.Evidence != nil {
		return list.Evidence, nil
	}
	return &list.evidenceDoc, nil
}

// evidence validates the stored form and converts it to Evidence.
func (doc *evidenceDoc) evidence() (*Evidence, error) {
	e := NewEvidence()
	var err error
	if e.kinds, err = doc.Evidence(); err != nil {
		return nil, err
	}
	if doc.Sources != nil {
		if err := doc.Sources.Check(); err != nil {
			return nil, err
		}
		e.sources = *doc.Sources
	}
	if err := doc.Parts.Check(); err != nil {
		return nil, err
	}
	e.parts = doc.Parts
	if e.json, err = doc.JSON.Set(); err != nil {
		return nil, err
	}
	return e, e.readMethods(doc.Methods)
}

// ReadEvidenceFile reads stored evidence from the file called name. It returns nil without an error if the file
// does not contain evidence, is not regular, or cannot be opened.
func ReadEvidenceFile(name string) (*Evidence, error) {
	f, err := os.Open(name)
	if err != nil {
		// The caller then reads the file as something else and reports the error.
		return nil, nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	head := make([]byte, evidenceHead)
	n, _ := io.ReadFull(f, head)
	if head = head[:n]; !maybeEvidence(head) && !isBinary(head) {
		return nil, nil
	}
	rest, err := io.ReadAll(io.LimitReader(f, maxEvidenceBytes+1))
	if err != nil {
		return nil, err
	}
	return parseEvidence(name, append(head, rest...))
}

// evidenceHead is the number of bytes at the beginning of a file from which stored evidence is recognized.
const evidenceHead = 64

// maybeEvidence reports whether a file with these first bytes may be stored evidence.
func maybeEvidence(head []byte) bool {
	head, found := bytes.CutPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{"))
	head = bytes.TrimLeft(head, " \t\r\n")
	return found && (bytes.HasPrefix(head, []byte(`"unwire_evidence"`)) || bytes.HasPrefix(head, []byte(`"v"`)))
}

// parseEvidence parses the content of the file called name. It returns nil without an error if that is not
// stored evidence.
func parseEvidence(name string, data []byte) (*Evidence, error) {
	if !isBinary(data) && (!maybeEvidence(data[:min(len(data), evidenceHead)]) || !bytes.Contains(data, []byte(`"unwire_evidence"`))) {
		return nil, nil
	}
	ev, err := ReadEvidence(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return ev, nil
}

// readMethods validates the stored statistics of methods and adds them to e.
func (e *Evidence) readMethods(methods map[string]*methodEvidence) error {
	if len(methods) > maxRoots {
		return fmt.Errorf("the evidence has more than %d methods", maxRoots)
	}
	for name, m := range methods {
		if m == nil || !countsValid(m.Calls, m.MostUp, m.MostDown, m.Streams) || len(m.Protocols) > maxProtocols || len(m.Choices) > maxChoices {
			return fmt.Errorf("method %q: a count is negative or too large", name)
		}
		c := m.clone()
		if c.Protocols == nil {
			c.Protocols = map[string]int64{}
		}
		if c.Choices == nil {
			c.Choices = chosenReadings{}
		}
		for _, n := range c.Protocols {
			if !countsValid(n) {
				return fmt.Errorf("method %q: a count is negative or too large", name)
			}
		}
		e.methods[name] = c
	}
	return nil
}

// countsValid reports whether all counts are between 0 and maxCount.
func countsValid(list ...int64) bool {
	for _, n := range list {
		if n < 0 || n > maxCount {
			return false
		}
	}
	return true
}
