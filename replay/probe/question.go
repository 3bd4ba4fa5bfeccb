package probe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// A Question is an uncertainty about a field of a request, which the server's parser may be able to
// resolve.
type Question struct {
	// Path are the field numbers, joined by dots, that lead to the message with the field; "" means the
	// request.
	Path string `json:"path"`
	// Number is the number of the field in question.
	Number int32 `json:"number"`
	// Doubt describes what is uncertain about the field.
	Doubt string `json:"doubt"`
	// Claims are the contradicting statements of several sources about the field.
	Claims []Claim `json:"claims"`
}

// A Claim is a statement of one source about the type of a field. Members that are "" state nothing.
type Claim struct {
	// From names the source of the claim, such as a file.
	From string `json:"from"`
	// Kind is "string", "message", "varint", "packed" and so on; "none" claims that the field does
	// not exist.
	Kind string `json:"kind"`
	// Label is the claimed label: "singular", "repeated" or "map".
	Label string `json:"label"`
	// Type is the claimed scalar type, if the field is a number.
	Type string `json:"type"`
	// Text is the claim as written in its source.
	Text string `json:"text"`

	// Concluded is the reason for the verdict.
	Concluded string `json:"concluded"`
	// Open describes which part of a confirmed claim the server's runtime cannot reveal.
	Open string `json:"open,omitempty"`
	// Verdict is the decision about the claim; "" before the server was asked.
	Verdict Verdict `json:"verdict"`
}

const (
	maxEvidence  = 64 << 20 // bytes
	maxQuestions = 20_000
	noKind       = "none"
)

// An inferred is one field in the evidence file that `schema infer` writes.
type inferred struct {
	// Message is the full name of the message that has the field.
	Message string `json:"message"`

	// Number is the field number.
	Number int32 `json:"number"`

	// Kind is the kind with the highest probability.
	Kind string `json:"kind"`

	// Type is the scalar type, or the full name of the field's message.
	Type string `json:"type"`

	// Settle describes what would resolve the uncertainty; "" if the field is not ambiguous.
	Settle string `json:"settle"`

	// Others are the alternative kinds with their probabilities P, from 0 to 1.
	Others []struct {
		Kind string  `json:"kind"`
		P    float64 `json:"p"`
	} `json:"alternatives"`
}

// ErrNoRoot reports that it is unclear which message of an evidence file is the request.
var ErrNoRoot = errors.New("it is not clear which message is the request")

// QuestionsOfInference lists the ambiguous fields of a method's request, from the evidence file data
// that `schema infer` wrote.
//
// Shape: root is the request's full name in that file; if it is "", the message that is named after the
// method is used, or the one to which no field refers. texts are fields of the request that are almost
// certainly strings.
// Limits: 64 MiB, 20,000 questions, messages eight levels deep.
// Errors: input that is not an evidence file; ErrNoRoot.
func QuestionsOfInference(data []byte, root, method string) (list []Question, texts []int32, err error) {
	var doc struct {
		Fields []inferred `json:"fields"`
	}
	if len(data) > maxEvidence {
		return nil, nil, fmt.Errorf("probe: the evidence file is larger than the limit of %d bytes", maxEvidence)
	}
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&doc); err != nil || len(doc.Fields) == 0 || doc.Fields[0].Message == "" {
		return nil, nil, errors.Join(errors.New("probe: the file is not evidence of 'schema infer'"), err)
	}

	// Group the fields by message, and note which messages are used as a field's type.
	messages, used := map[string][]inferred{}, map[string]bool{}
	for _, f := range doc.Fields {
		messages[f.Message] = append(messages[f.Message], f)
		used[f.Type] = true
	}
	if root == "" {
		root = rootOf(messages, used, method)
	}
	if messages[root] == nil {
		return nil, nil, missingRoot(root)
	}

	// A breadth-first walk from the request, so that each message type is visited at its shortest
	// path.
	type place struct {
		message string
		path    []int32
	}
	seen := map[string]bool{root: true}
	for todo := []place{{root, nil}}; len(todo) > 0; todo = todo[1:] {
		at := todo[0]
		for _, f := range messages[at.message] {
			if f.Number < 1 || f.Number > maxNumber {
				continue
			}
			if f.Settle != "" && len(list) < maxQuestions {
				list = append(list, f.question(PathText(at.path)))
			}
			if len(at.path) == 0 && f.Kind == "string" {
				texts = append(texts, f.Number)
			}
			if f.Kind == "message" && messages[f.Type] != nil && !seen[f.Type] && len(at.path) < maxDepth {
				seen[f.Type] = true
				todo = append(todo, place{f.Type, append(slices.Clone(at.path), f.Number)})
			}
		}
	}
	return list, texts, nil
}

// question converts an ambiguous field of the message at path to a question, whose claims are the
// chosen type and its alternatives.
func (f *inferred) question(path string) Question {
	q := Question{Path: path, Number: f.Number, Doubt: f.Settle}
	c := Claim{From: "inferred", Kind: f.Kind, Text: cmp.Or(f.Type, f.Kind)}
	switch f.Kind {
	case "varint", "fixed32", "fixed64":
		c.Type = f.Type
	case "message":
		c.Text = "message"
	}
	q.Claims = append(q.Claims, c)
	for _, o := range f.Others {
		q.Claims = append(q.Claims, Claim{From: fmt.Sprintf("alternative with probability %.2g", o.P), Kind: o.Kind, Text: o.Kind})
	}
	return q
}

// missingRoot returns the error for evidence without the message root, or, if root is empty, without a message that is
// named after the method. Errors: ErrNoRoot.
func missingRoot(root string) error {
	if root == "" {
		return fmt.Errorf("probe: %w: no message in the evidence file is named after the method", ErrNoRoot)
	}
	return fmt.Errorf("probe: %w: no message in the evidence file has the name %q", ErrNoRoot, root)
}

// rootOf returns the name of the message that is the request of a method; "" if it is unclear. used are
// the messages to which fields refer.
func rootOf(messages map[string][]inferred, used map[string]bool, method string) string {
	service, rpc, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	pkg := string(protoreflect.FullName(service).Parent())
	for _, name := range []string{rpc + "Request", rpc} {
		if pkg != "" {
			name = pkg + "." + name
		}
		if messages[name] != nil {
			return name
		}
	}
	var free []string
	for name := range messages {
		if !used[name] {
			free = append(free, name)
		}
	}
	if len(free) == 1 {
		return free[0]
	}
	return ""
}

// QuestionsOfDefinitions lists the fields on which two definitions of a request, a and b, disagree.
// fromA and fromB name the sources of the definitions. texts are the fields that both declare as
// strings.
//
// Limits: 20,000 questions, messages eight levels deep.
func QuestionsOfDefinitions(fromA string, a protoreflect.MessageDescriptor, fromB string, b protoreflect.MessageDescriptor) (list []Question, texts []int32) {
	// The walk visits pairs of message types at the same path, each pair once.
	type pair struct {
		a, b protoreflect.MessageDescriptor
		path []int32
	}
	seen := map[[2]protoreflect.FullName]bool{}
	for todo := []pair{{a, b, nil}}; len(todo) > 0; todo = todo[1:] {
		at := todo[0]
		both := [2]protoreflect.FullName{at.a.FullName(), at.b.FullName()}
		if seen[both] || len(at.path) > maxDepth {
			continue
		}
		seen[both] = true
		for _, n := range numbersOf(at.a, at.b) {
			x, y := claimOf(fromA, at.a, n), claimOf(fromB, at.b, n)
			if x.Kind != y.Kind || x.Label != y.Label {
				if len(list) < maxQuestions {
					list = append(list, Question{Path: PathText(at.path), Number: n, Doubt: "the definitions disagree", Claims: []Claim{x, y}})
				}
				continue
			}
			f, g := at.a.Fields().ByNumber(protoreflect.FieldNumber(n)), at.b.Fields().ByNumber(protoreflect.FieldNumber(n))
			switch {
			case f.Kind() == protoreflect.StringKind && len(at.path) == 0:
				texts = append(texts, n)
			case f.Message() != nil && !f.IsMap() && f.Kind() == protoreflect.MessageKind:
				todo = append(todo, pair{f.Message(), g.Message(), append(slices.Clone(at.path), n)})
			}
		}
	}
	return list, texts
}

// numbersOf returns the sorted numbers of all fields of some message types.
func numbersOf(list ...protoreflect.MessageDescriptor) (out []int32) {
	for _, md := range list {
		for i := range md.Fields().Len() {
			out = append(out, int32(md.Fields().Get(i).Number()))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// claimOf returns the claim about field number n that follows from a message definition. from names the
// source.
func claimOf(from string, md protoreflect.MessageDescriptor, n int32) Claim {
	f := md.Fields().ByNumber(protoreflect.FieldNumber(n))
	if f == nil {
		return Claim{From: from, Kind: noKind, Text: "no such field"}
	}
	c := Claim{From: from, Label: "singular"}
	switch {
	case f.IsMap():
		c.Label = "map"
	case f.IsList():
		c.Label = "repeated"
	}
	switch k := f.Kind(); k {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind, protoreflect.GroupKind:
		c.Kind = k.String()
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		c.Kind = "fixed32"
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		c.Kind = "fixed64"
	default:
		c.Kind = "varint"
	}
	c.Text = fmt.Sprintf("%s %s %s", c.Label, f.Kind(), f.Name())
	return c
}
