package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/captures/upload"
	"unwire/decode"
	"unwire/schema"
	"unwire/schema/check"
	"unwire/schema/infer"
	"unwire/schema/infer/messages"
	"unwire/schema/infer/sources"
)

// readFn is the Beam stage that reads a segment of a recording without checking it against definitions: it
// emits the evidence of each part of the traffic.
//
// It is separate from readAndCheckFn because Beam's prism runner, while it runs a function with a side input,
// polls the watermarks without a pause, which doubles the processor time.
type readFn struct {
	// reading has the options for reading segments.
	reading
}

// ProcessElement reads one segment, as reading.read does.
func (f *readFn) ProcessElement(ctx context.Context, sum string, elements func(*[]byte) bool, emitEvidence func(string, []byte), emitResult func([]byte)) error {
	return f.read(ctx, sum, elements, nil, emitEvidence, emitResult)
}

// readAndCheckFn is the Beam stage that reads a segment of a recording and checks it against definitions: it
// emits the evidence of each part of the traffic, and findings.
type readAndCheckFn struct {
	// reading has the options for reading segments.
	reading
	// Definitions is the SHA-256 of the definitions against which segments are checked.
	Definitions string
}

// ProcessElement reads one segment, as reading.read does. defs is the serialized descriptor set of the
// definitions.
func (f *readAndCheckFn) ProcessElement(ctx context.Context, sum string, elements func(*[]byte) bool, defs []byte, emitEvidence func(string, []byte), emitResult func([]byte)) error {
	parsed, err := parseDefinitions(defs)
	if err != nil {
		return err
	}
	return f.read(ctx, sum, elements, &definitions{parsed, f.Definitions}, emitEvidence, emitResult)
}

// definitions are those against which segments are checked; hash is their SHA-256.
type definitions struct {
	// Schema has the message types and services that are defined.
	*schema.Schema

	// hash is the SHA-256 of the definitions, in hexadecimal.
	hash string
}

// reading has the options for reading segments, on each worker.
type reading struct {
	// Access describes how to connect to object stores.
	Access Access
	// Evidence has the hashes of the segments whose evidence was counted in an earlier run, but which must be
	// checked again with other definitions.
	Evidence map[string]bool
}

// read reads one segment, whose content has the hash sum. elements are the names under which it was listed, of
// which one is read. If defs is set, the segment is checked, too. Evidence is emitted by part, other results as
// JSON.
func (f *reading) read(ctx context.Context, sum string, elements func(*[]byte) bool, defs *definitions, emitEvidence func(string, []byte), emitResult func([]byte)) error {
	// The first name in alphabetical order is chosen, so that repeated attempts give the same result.
	var ref segmentRef
	for element := []byte(nil); elements(&element); {
		var other segmentRef
		if err := json.Unmarshal(element, &other); err != nil {
			return err
		}
		if ref.URL == "" || other.URL < ref.URL {
			ref = other
		}
	}
	file, remove, err := fetch(ctx, f.Access, ref)
	if err != nil {
		return err
	}
	defer remove()
	capture, err := store.Open(file, store.ReadOptions{Profile: subject()})
	if err != nil {
		// Another attempt would fail, too.
		emitResult(result{Problem: &Problem{Segment: sum, URL: ref.URL, Error: problemText(file, err)}}.encode())
		return nil
	}
	defer capture.Close()

	// With other definitions, a segment is checked again, but its evidence must not be counted twice.
	x := extraction{sum: sum, ref: ref, capture: capture, result: emitResult}
	if !f.Evidence[sum] {
		if err := x.evidence(ctx, emitEvidence); err != nil {
			return fmt.Errorf("%s: %w", ref.URL, err)
		}
	}
	record := &Segment{SHA256: sum, URL: ref.URL, Size: ref.Size}
	if defs != nil {
		if err := x.check(ctx, defs.Schema); err != nil {
			return fmt.Errorf("%s: %w", ref.URL, err)
		}
		record.Definitions = defs.hash
	}
	m, err := upload.Describe(ctx, capture, subject())
	if err != nil && !errors.Is(err, captures.ErrDamaged) {
		return fmt.Errorf("%s: %w", ref.URL, err)
	}
	if m != nil {
		record.Exchanges, record.First, record.Last = m.Exchanges, m.First, m.Last
	}
	emitResult(result{Segment: record}.encode())
	return nil
}

// parseDefinitions decodes a FileDescriptorSet.
func parseDefinitions(data []byte) (*schema.Schema, error) {
	set := new(descriptorpb.FileDescriptorSet)
	if err := proto.Unmarshal(data, set); err != nil {
		return nil, fmt.Errorf("the definitions cannot be read: %w", err)
	}
	return schema.FromDescriptorSet(set)
}

// An extraction is the state of reading one segment of a recording.
type extraction struct {
	// sum is the SHA-256 of the segment.
	sum string
	// ref is the location of the segment.
	ref segmentRef
	// capture is the opened segment.
	capture *store.Store
	// result emits an encoded result to the next stage.
	result func([]byte)
}

// problem emits the result that some data of the segment could not be read. The rest of the segment is still
// used.
func (x *extraction) problem(err error) {
	x.result(result{Problem: &Problem{Segment: x.sum, URL: x.ref.URL, Error: problemText(x.capture.Path, err)}}.encode())
}

// problemText returns the text of an error about a segment: each cause once, without the names of packages and of the
// file, because a Problem has the URL of the segment, and the file may be a temporary copy.
func problemText(file string, err error) string {
	var causes []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "decode: ")
		line = strings.TrimPrefix(strings.TrimPrefix(line, "captures: "), file+": ")
		if !slices.Contains(causes, line) {
			causes = append(causes, line)
		}
	}
	return strings.Join(causes, "; ")
}

// groupOf returns the client and the day of an exchange, as a Part without method and direction.
func groupOf(ex *captures.Exchange) sources.Part {
	return sources.Part{Client: upload.ClientOf(ex, subject()), Day: ex.Started.UTC().Format("2006-01-02")}
}

// evidence emits the evidence of each part of the traffic in the segment.
func (x *extraction) evidence(ctx context.Context, emit func(string, []byte)) error {
	partOf := func(ex *decode.Exchange) sources.Part {
		p := groupOf(&ex.Exchange)
		if ex.Transport == captures.HTTP && ex.Service != "" && ex.RPC != "" && ex.Codec == "proto" {
			p.Method = ex.Service + "/" + ex.RPC
		}
		return p
	}

	// Damaged segments still give the evidence that precedes the damage.
	all, err := infer.Gather(ctx, x.capture, infer.GatherOptions{PartOf: partOf})
	if err == nil || errors.Is(err, captures.ErrDamaged) {
		// Messages of WebSockets are grouped within the segment, as `unwire schema infer` does.
		var set messages.Set
		err = errors.Join(err, set.AddTo(ctx, x.capture, 0, func(ex *decode.Exchange) *infer.Evidence {
			p := partOf(ex)
			if all.Parts[p] == nil {
				all.Parts[p] = infer.NewEvidence()
			}
			return all.Parts[p]
		}))
	}
	if err != nil {
		if !errors.Is(err, captures.ErrDamaged) {
			return err
		}
		x.problem(err)
	}

	// A limit keeps one bad segment from filling the manifest.
	for i, r := range all.Remarks {
		if i == maxRemarks {
			x.problem(fmt.Errorf("%d more exchanges were not read completely", len(all.Remarks)-i))
			break
		}
		x.problem(fmt.Errorf("exchange %d: %w", r.Exchange, errors.Join(r.Undecoded, r.Rejected)))
	}

	segment, err := hex.DecodeString(x.sum)
	if err != nil {
		return err
	}
	// Parts of several groups may meet: exchanges that are no calls may have messages of the same type.
	merged := map[sources.Part]*infer.Evidence{}
	for group, ev := range all.Parts {
		split, err := ev.Split(group)
		if err != nil {
			return err
		}
		for part, ev := range split {
			if have := merged[part]; have != nil {
				have.Merge(ev)
			} else {
				merged[part] = ev
			}
		}
	}
	for part, ev := range merged {
		ev.SetPart(part, segment)
		data, err := packEvidence(ev)
		if err != nil {
			return err
		}
		emit(encodePart(part), data)
	}
	return nil
}

// maxRemarks is the maximum number of problems that are reported for one segment.
const maxRemarks = 20

// check emits, for each client and day, the findings of checking the segment against definitions.
func (x *extraction) check(ctx context.Context, defs *schema.Schema) error {
	groups := map[sources.Part]bool{}
	for ex, err := range x.capture.Exchanges(ctx) {
		if errors.Is(err, captures.ErrDamaged) {
			// It was reported with the evidence, or is when the exchanges are checked.
			break
		}
		if err != nil {
			return err
		}
		groups[groupOf(ex)] = true
	}

	// The rows of findings and coverage are for one client and day, so each group has its own checker.
	name := path.Base(x.ref.URL)
	for group := range groups {
		k := check.NewChecker(defs, check.Options{Profile: subject(), MaxFrames: maxAddresses, Address: func(ex *decode.Exchange, f *decode.Frame, _ bool) string {
			return fmt.Sprintf("%s#%d/%s/%d", name, ex.ID, f.Dir, f.Seq)
		}})
		if _, err := k.AddCapture(ctx, groupView{x.capture, group}, 0, false, nil); err != nil {
			if !errors.Is(err, captures.ErrDamaged) {
				return err
			}
			x.problem(err)
		}
		for _, r := range rowsOf(k.Report(), group) {
			x.result(r.encode())
		}
	}
	return nil
}

// A groupView is a view of a segment that has only the exchanges of one client and day.
type groupView struct {
	// Store is the segment (a file with a part of a recording); the embedding type hides its other exchanges.
	*store.Store
	// group has the client and day that select the exchanges.
	group sources.Part
}

// Exchanges yields only the exchanges of the client and day.
func (v groupView) Exchanges(ctx context.Context) iter.Seq2[*captures.Exchange, error] {
	return func(yield func(*captures.Exchange, error) bool) {
		for ex, err := range v.Store.Exchanges(ctx) {
			if err == nil && groupOf(ex) != v.group {
				continue
			}
			if !yield(ex, err) {
				return
			}
		}
	}
}

// encodePart encodes a part as a Beam key. Equal parts have equal keys.
func encodePart(p sources.Part) string {
	data, err := json.Marshal(p)
	if err != nil {
		panic(err) // texts always have a form in JSON
	}
	return string(data)
}

// decodePart decodes the result of encodePart.
func decodePart(key string) (p sources.Part, err error) {
	return p, json.Unmarshal([]byte(key), &p)
}

// keyOf returns the name of a part in output files. It is readable, and unique because it contains a hash.
func keyOf(p sources.Part) string {
	sum := sha256.Sum256([]byte(encodePart(p)))
	name := "other"
	if p.Method != "" {
		name = slug(p.Method)
	}
	if p.Direction != "" {
		name += "." + p.Direction
	}
	return name + "@" + slug(p.Client) + "@" + p.Day + "-" + hex.EncodeToString(sum[:4])
}

// slug returns s with all characters replaced by underscores except letters, digits, dots and hyphens.
func slug(s string) string {
	b := []byte(s)
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' {
			b[i] = '_'
		}
	}
	return string(b[:min(len(b), 80)])
}
