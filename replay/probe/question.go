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

// A Question is a doubt about a field of a request, which a server's parser may
// settle.
type Question struct {
	Path   string  `json:"path"`
	Number int32   `json:"number"`
	Doubt  string  `json:"doubt"`
	Claims []Claim `json:"claims"`
}

// A Claim is what one source says of a field. What is empty it does not say.
type Claim struct {
	From string `json:"from"`
	// "string", "message", "varint", "packed", …; "none": the field does not exist
	Kind  string `json:"kind"`
	Label string `json:"label"`
	Type  string `json:"type"` // of a number
	Text  string `json:"text"` // as the source has it

	// Concluded is the reason for the verdict.
	Concluded string `json:"concluded"`
	// Open is what the runtime does not show of a confirmed claim.
	Open string `json:"open,omitempty"`
	// Verdict is what follows from what the server said; empty before it was asked.
	Verdict Verdict `json:"verdict"`
}

const (
	maxEvidence  = 64 << 20 // bytes
	maxQuestions = 20_000
	noKind       = "none"
)

// inferred is a field in the evidence that `schema infer` writes.
type inferred struct {
	Message string `json:"message"`
	Number  int32  `json:"number"`
	Kind    string `json:"kind"`
	Type    string `json:"type"`
	Settle  string `json:"settle"`
	Others  []struct {
		Kind string  `json:"kind"`
		P    float64 `json:"p"`
	} `json:"alternatives"`
}

// ErrNoRoot is wrapped where it is not clear which message is the request.
var ErrNoRoot = errors.New("which message is the request?")

// QuestionsOfInference lists the doubts of an inference's evidence that are
// about a method's request.
//
// Shape: root is the request's full name there; "" is the one that is called
// after the method, or no field's type. texts are fields of the request that
// are hardly anything but text.
// Limits: 64 MiB, 20,000 questions, messages eight levels deep.
// Errors: JSON that is no evidence; ErrNoRoot.
func QuestionsOfInference(data []byte, root, method string) (list []Question, texts []int32, err error) {
	var doc struct {
		Fields []inferred `json:"fields"`
	}
	if len(data) > maxEvidence {
		return nil, nil, fmt.Errorf("probe: evidence of more than %d bytes", maxEvidence)
	}
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&doc); err != nil || len(doc.Fields) == 0 || doc.Fields[0].Message == "" {
		return nil, nil, errors.Join(errors.New("probe: no evidence of an inference"), err)
	}
	messages, used := map[string][]inferred{}, map[string]bool{}
	for _, f := range doc.Fields {
		messages[f.Message] = append(messages[f.Message], f)
		used[f.Type] = true
	}
	if root == "" {
		root = rootOf(messages, used, method)
	}
	if messages[root] == nil {
		return nil, nil, fmt.Errorf("probe: %w there is none called %q among %d", ErrNoRoot, root, len(messages))
	}
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

// question is about what the evidence takes a field for, and what else it may be.
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
		q.Claims = append(q.Claims, Claim{From: fmt.Sprintf("otherwise (%.2g)", o.P), Kind: o.Kind, Text: o.Kind})
	}
	return q
}

// rootOf finds the request of a method among inferred messages.
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

// QuestionsOfDefinitions lists what two definitions of a request disagree on;
// texts are fields of it that both have as text.
//
// Limits: 20,000 questions, messages eight levels deep.
func QuestionsOfDefinitions(fromA string, a protoreflect.MessageDescriptor, fromB string, b protoreflect.MessageDescriptor) (list []Question, texts []int32) {
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

func numbersOf(list ...protoreflect.MessageDescriptor) (out []int32) {
	for _, md := range list {
		for i := range md.Fields().Len() {
			out = append(out, int32(md.Fields().Get(i).Number()))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// claimOf is what a definition says of a number.
func claimOf(from string, md protoreflect.MessageDescriptor, n int32) Claim {
	f := md.Fields().ByNumber(protoreflect.FieldNumber(n))
	if f == nil {
		return Claim{From: from, Kind: noKind, Text: "not there"}
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
