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

// schemaGraphEndpoints are those of the graph of types, and of the values that a field has.
func schemaGraphEndpoints() []endpoint {
	return []endpoint{
		{path: "schema/graph", answer: answerGraph},
		{path: "schema/field", answer: answerField},
	}
}

// A typeNode is a type of a graph.
type typeNode struct {
	Name string `json:"name"`
	Enum bool   `json:"enum,omitempty"`
	Seen bool   `json:"seen"`
}

// A typeEdge says that a field of one type has another type.
type typeEdge struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Field string `json:"field"`
}

// A typeGraph is a graph of types under construction.
type typeGraph struct {
	nodes []*typeNode
	known map[string]bool
	edges []*typeEdge
	cut   bool
	seen  map[string]bool
}

// add adds a type, and reports whether it is in the graph.
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

// reach adds the types that fields of a message have, and so on, those that are nearer first.
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

// referTo adds the messages that have fields of a type.
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

// answerGraph returns the types around a message: those that it refers to, and those that refer to it.
func answerGraph(ctx context.Context, q *request) (any, error) {
	f, err := q.file()
	if err != nil {
		return nil, err
	}
	cover, defs, err := f.coverageOf(ctx)
	if err != nil {
		return nil, err
	}
	md := defs.Message(q.query.Get("name"))
	if md == nil {
		return nil, notFound("there is no message %s", q.query.Get("name"))
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

// answerField returns values of a field of a declared message, and what the capture alone says about its type.
func answerField(ctx context.Context, q *request) (any, error) {
	f, err := q.file()
	if err != nil {
		return nil, err
	}
	c, err := f.open()
	if err != nil {
		return nil, err
	}
	defs, err := f.definitions(ctx)
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
		return nil, notFound("there is no message %s", q.query.Get("name"))
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

// explainExample returns the evidence for the type of the field of an example.
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
