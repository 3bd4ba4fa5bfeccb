package ui

import (
	"context"
	"errors"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/decode/fieldpath"
	"unwire/schema"
)

// maxGraphTypes bounds the types of a graph: more cannot be read.
const maxGraphTypes = 40

// schemaGraphEndpoints returns the API endpoints about the graph of types and the values of a field.
func schemaGraphEndpoints() []endpoint {
	return []endpoint{
		{path: "schema/graph", answer: answerGraph},
		{path: "schema/field", answer: answerField},
	}
}

// A typeNode is a type in a graph of types.
type typeNode struct {
	// Name is the full name of the type.
	Name string `json:"name"`

	// Enum means that the type is an enum; otherwise it is a message.
	Enum bool `json:"enum,omitempty"`

	// Seen means that the capture has a message of the type. It is always true for enums.
	Seen bool `json:"seen"`
}

// A typeEdge means that a field of one type has another type.
type typeEdge struct {
	// From is the full name of the type that has the field.
	From string `json:"from"`

	// To is the full name of the field's type.
	To string `json:"to"`

	// Field is the name of the field.
	Field string `json:"field"`
}

// A typeGraph is a graph of types under construction.
type typeGraph struct {
	// nodes are the types, in the order in which they were added.
	nodes []*typeNode

	// known is the set of the types in nodes.
	known map[string]bool

	// edges are the references between these types.
	edges []*typeEdge

	// cut means that types were left out because there are more than maxGraphTypes.
	cut bool

	// seen is the set of message types that the capture has messages of.
	seen map[string]bool
}

// add adds a type unless it is there. ok is false if there is no room for it.
func (g *typeGraph) add(name protoreflect.FullName, enum bool) (isNew, ok bool) {
	switch {
	case g.known[string(name)]:
		return false, true
	case len(g.nodes) >= maxGraphTypes:
		g.cut = true
		return false, false
	}
	g.known[string(name)] = true
	g.nodes = append(g.nodes, &typeNode{string(name), enum, enum || g.seen[string(name)]})
	return true, true
}

// reach adds the types of md's fields, of their fields, and so on, the nearest first.
func (g *typeGraph) reach(md protoreflect.MessageDescriptor) {
	for queue := []protoreflect.MessageDescriptor{md}; len(queue) > 0; queue = queue[1:] {
		from := queue[0]
		for i := range from.Fields().Len() {
			fd := from.Fields().Get(i)
			var to protoreflect.Descriptor
			switch {
			case fd.Message() != nil:
				to = fd.Message()
			case fd.Enum() != nil:
				to = fd.Enum()
			default:
				continue
			}

			// Edges to types that are left out would lead nowhere.
			isNew, ok := g.add(to.FullName(), fd.Enum() != nil)
			if !ok {
				continue
			}
			g.edges = append(g.edges, &typeEdge{string(from.FullName()), string(to.FullName()), string(fd.Name())})
			if isNew && fd.Message() != nil {
				queue = append(queue, fd.Message())
			}
		}
	}
}

// referTo adds the message types that have a field of the type md.
func (g *typeGraph) referTo(defs *schema.Schema, md protoreflect.MessageDescriptor) {
	for other := range defs.Messages() {
		for i := range other.Fields().Len() {
			fd := other.Fields().Get(i)
			if m := fd.Message(); m == nil || m.FullName() != md.FullName() || other.FullName() == md.FullName() {
				continue
			}
			if _, known := g.known[string(other.FullName())]; known {
				continue // its edges are there
			}
			if _, ok := g.add(other.FullName(), false); ok {
				g.edges = append(g.edges, &typeEdge{string(other.FullName()), string(md.FullName()), string(fd.Name())})
			}
			break
		}
	}
}

// answerGraph implements the endpoint schema/graph. It returns a graph of the types that a message type
// refers to and of those that refer to it.
func answerGraph(ctx context.Context, q *request) (any, error) {
	cover, defs, err := q.coverage(ctx)
	if err != nil {
		return nil, err
	}
	md := defs.Message(q.query.Get("name"))
	if md == nil {
		return nil, notFound("the definitions contain no message %s", q.query.Get("name"))
	}
	g := &typeGraph{nodes: []*typeNode{}, edges: []*typeEdge{}, known: map[string]bool{}, seen: map[string]bool{}}
	for _, t := range cover.report.Messages {
		g.seen[t.Message] = t.Seen > 0
	}
	_, _ = g.add(md.FullName(), false)
	g.reach(md)
	g.referTo(defs, md)
	return map[string]any{"v": 1, "types": g.nodes, "edges": g.edges, "cut": g.cut}, nil
}

// answerField implements the endpoint schema/field. It returns example values of a declared field, and
// the evidence in the capture for its type.
func answerField(ctx context.Context, q *request) (any, error) {
	f, err := q.file()
	if err != nil {
		return nil, err
	}
	c, defs, err := f.openWithDefinitions(ctx)
	if err != nil {
		return nil, err
	}
	number, err := q.number("number", 0)
	if err != nil {
		return nil, err
	}
	var md protoreflect.MessageDescriptor
	if defs != nil {
		md = defs.Message(q.query.Get("name"))
	}
	if md == nil {
		return nil, notFound("the definitions contain no message %s", q.query.Get("name"))
	}

	// The first example is the most frequent value; its frame is where the evidence is shown.
	found, err := c.ExamplesOf(ctx, defs, md.FullName(), protoreflect.FieldNumber(min(number, 1<<30)))
	if err != nil && !errors.Is(err, captures.ErrDamaged) {
		return nil, err
	}
	explained := []*contract.Explanation{}
	if len(found.Examples) > 0 {
		if explained, err = f.explainExample(ctx, found.Examples[0]); err != nil {
			return nil, err
		}
	}
	raw, err := lines(explained)
	return map[string]any{"v": 1, "found": found, "explanations": raw}, err
}

// explainExample returns the evidence for the type of the field that an example shows.
func (f *file) explainExample(ctx context.Context, e *query.FieldExample) ([]*contract.Explanation, error) {
	at := query.ParseAddress(e.Frame)
	d, err := f.document(ctx, at.Exchange, true)
	if err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	i, err := d.position(at.Dir, at.Frame)
	if err != nil {
		return nil, err
	}
	frame := &d.at.Frames[i]
	path, err := fieldpath.ParseNumbers(e.Path)
	if err != nil || frame.Tree == nil {
		return nil, err
	}
	out := []*contract.Explanation{}
	for _, x := range query.Explain(frame.Tree, d.view(frame), path, d.views.Messages(frame.Dir)) {
		x.Dir = frame.Dir.String()
		out = append(out, &x)
	}
	return out, nil
}
