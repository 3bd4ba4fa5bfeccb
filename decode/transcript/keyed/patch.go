package keyed

import (
	"cmp"
	"strconv"
	"strings"

	"unwire/decode/jsontree"
	"unwire/decode/transcript/event"
	"unwire/decode/transcript/naming"
)

// A patch is a change of a document (RFC 6902, GraphQL incremental delivery, and the shorter forms of chat services):
// the values that are set or appended at a path.
type patch struct {
	// path are the steps from the root of the document.
	path []string

	// values are the new values; several ones follow each other in an array.
	values []*event.Node

	// appends means that the value continues a text, or is added to the end of an array.
	appends bool
}

const (
	// maxSteps is the maximum number of steps of a patch's path.
	maxSteps = 40

	// maxBatch is the maximum nesting of patches in patches.
	maxBatch = 4
)

// operations are words for what a patch does.
var operations = set(`add append replace set insert update extend push concat merge patch batch`)

// patchOf returns the patch that object n is; ok is false if it is not one. An object with a value but without a path
// has the path of the last patch.
func (d *document) patchOf(n *event.Node) (p patch, ok bool) {
	op, path, others := "", (*event.Node)(nil), 0
	for _, m := range n.Items {
		switch m.Fold {
		case "op", "o", "operation":
			op = m.Text
		case "path", "p":
			path = m
		case "value", "v", "data":
			p.values = []*event.Node{m}
		case "items":
			p.values, p.appends = m.Items, true
		default:
			others++
		}
	}
	if kind := cmp.Or(n.String("type"), n.String("action")); op == "" && isOperation(kind) {
		op = kind
	}
	p.appends = p.appends || appends(op)
	if path == nil {
		return d.continued(n, p, op)
	}
	steps, rooted := stepsOf(path)
	if steps == nil && !rooted || p.values == nil || len(steps) > maxSteps {
		return patch{}, false
	}
	ok = op != "" || path.Kind == jsontree.Array
	if !rooted {
		// It may be the path of a file.
		ok = others == 0 && isOperation(op)
	}
	if len(steps) > 0 && steps[len(steps)-1] == "-" {
		steps, p.appends = steps[:len(steps)-1], true
	}
	p.path = steps
	return p, ok
}

// isOperation reports whether the first word of an operation says what a patch does.
func isOperation(op string) bool {
	word, _, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(op, "_", "-")), "-")
	return operations[word]
}

// appends reports whether an operation continues a text or adds to an array.
func appends(op string) bool {
	return has(naming.Parts(strings.ToLower(op)), "append", "extend", "concat")
}

// continued returns the patch in object n, which has no path: a value, perhaps with an operation or a counter, for the
// path of the last patch.
func (d *document) continued(n *event.Node, p patch, op string) (patch, bool) {
	if !d.patched || len(p.values) != 1 || p.values[0].Fold != "v" {
		return patch{}, false
	}
	for _, m := range n.Items {
		if m.Fold != "v" && m.Fold != "o" && m.Kind != jsontree.Number {
			return patch{}, false
		}
	}
	p.path = d.last
	switch v := p.values[0]; {
	case v.Kind == jsontree.Object && op == "" && !isPatched(d.at(d.last)):
		// An object does not continue a text: it is the next document.
		p.path = nil
	case v.Kind == jsontree.String:
		p.appends = p.appends || op == ""
	}
	return p, true
}

// isPatched reports whether n may be replaced by an object.
func isPatched(n *event.Node) bool {
	return n != nil && (n.Kind == jsontree.Object || n.Kind == jsontree.Array)
}

// stepsOf returns the steps of a path: a JSON pointer, or a list of names and indexes. rooted means that they begin at
// the root for certain; a pointer without the first slash may be something else.
func stepsOf(m *event.Node) (steps []string, rooted bool) {
	switch m.Kind {
	case jsontree.String:
		if m.Text == "" {
			return nil, true
		}
		rest, rooted := strings.CutPrefix(m.Text, "/")
		return strings.Split(rest, "/"), rooted
	case jsontree.Array:
		for _, e := range m.Items {
			if e.Kind != jsontree.String && e.Kind != jsontree.Number {
				return nil, false
			}
			steps = append(steps, e.Text)
		}
		return steps, len(steps) > 0
	}
	return nil, false
}

// visitPatch finds the pieces in the values of a patch, and in the patches that it consists of. depth is its nesting.
func (f *finder) visitPatch(p patch, sc scope, depth int) {
	d := &f.document
	d.adopt(p.path)
	for _, v := range p.values {
		if batch := d.batch(v, p.path); len(batch) > 0 && depth < maxBatch {
			for _, b := range batch {
				f.visitPatch(b, sc, depth+1)
			}
			continue
		}
		d.last, d.patched = p.path, true
		values := []*event.Node{v}
		if target := d.at(p.path); p.appends && v.Kind == jsontree.Array && target != nil && target.Kind == jsontree.Array {
			values = v.Items
		}
		for _, v := range values {
			inner := sc
			inner.delta = sc.delta || p.appends && v.Kind == jsontree.String
			path := d.apply(p.path, v, p.appends)
			whole := d.around(path, v)
			d.visited = true
			f.visitValue(whole, inner)
			d.visited = false
		}
	}
}

// A document is what patches have built so far. A patch of a text is read as if the server had sent the objects around
// the text again, with only their marks and the text in them.
type document struct {
	// root is the document, whose nodes are those of the events; nil before the first patch.
	root *event.Node

	// recent are the last events that were not patches; one of them may be the document that is patched.
	recent []*event.Node

	// last is the path of the last patch, and patched means that there was one.
	last    []string
	patched bool

	// visited means that the value of a patch is being searched. Nothing in it is a patch.
	visited bool
}

const (
	// maxRecent is the maximum number of events that are kept because later patches may apply to them.
	maxRecent = 8

	// maxScanned is the maximum number of members of an object that are searched for a step of a path or for marks.
	maxScanned = 512
)

// remember keeps an event, to which later patches may apply.
func (d *document) remember(root *event.Node) {
	if d.recent = append(d.recent, root); len(d.recent) > maxRecent {
		d.recent = d.recent[1:]
	}
}

// adopt makes a recent event, or an object in it, the document if the path leads through it and not through the
// document.
func (d *document) adopt(path []string) {
	if len(path) == 0 || child(d.root, path[0]) != nil {
		return
	}
	for i := len(d.recent) - 1; i >= 0; i-- {
		r := d.recent[i]
		if child(r, path[0]) != nil {
			d.root = r
			return
		}
		for _, m := range r.Items[:min(len(r.Items), maxScanned)] {
			if m.Kind == jsontree.Object && child(m, path[0]) != nil {
				d.root = m
				return
			}
		}
	}
}

// batch returns the patches in v if v is a list of patches, whose paths continue the path of the patch around them.
func (d *document) batch(v *event.Node, path []string) []patch {
	if v.Kind != jsontree.Array {
		return nil
	}
	var out []patch
	for _, e := range v.Items {
		var b patch
		var at *event.Node
		op := ""
		for _, m := range e.Items {
			switch m.Fold {
			case "p", "path":
				at = m
			case "v", "value":
				b.values = []*event.Node{m}
			case "o", "op", "operation":
				op = m.Text
			default:
				return nil
			}
		}
		if at == nil || b.values == nil {
			return nil
		}
		steps, _ := stepsOf(at)
		if b.path = append(path[:len(path):len(path)], steps...); len(b.path) > maxSteps {
			return nil
		}
		b.appends = appends(op)
		out = append(out, b)
	}
	return out
}

// child returns the member or element of n that a step of a path leads to, or nil. Negative indexes count from the end.
func child(n *event.Node, step string) *event.Node {
	switch {
	case n == nil:
		return nil
	case n.Kind == jsontree.Array:
		i, err := strconv.Atoi(step)
		if i < 0 {
			i += len(n.Items)
		}
		if err != nil || i < 0 || i >= len(n.Items) {
			return nil
		}
		return n.Items[i]
	case n.Kind == jsontree.Object:
		for _, m := range n.Items[:min(len(n.Items), maxScanned)] {
			if m.Name == step {
				return m
			}
		}
	}
	return nil
}

// at returns the value at a path of the document, or nil.
func (d *document) at(path []string) *event.Node {
	n := d.root
	for _, step := range path {
		n = child(n, step)
	}
	return n
}

// apply puts value v at a path of the document and returns the path at which it is. What continues a text is not kept.
func (d *document) apply(path []string, v *event.Node, appends bool) []string {
	if len(path) == 0 {
		if v.Kind == jsontree.Object {
			d.root = v
		}
		return path
	}
	if d.root == nil {
		d.root = &event.Node{Kind: jsontree.Object}
	}
	outer, step := d.root, path[len(path)-1]
	for i, s := range path[:len(path)-1] {
		next := child(outer, s)
		if next == nil {
			next = &event.Node{Kind: jsontree.Object, Name: s, Fold: naming.Fold(s)}
			if isIndex(path[i+1]) {
				next.Kind = jsontree.Array
			}
			outer.Items = append(outer.Items, next)
		}
		outer = next
	}
	old := child(outer, step)
	switch {
	case appends && old != nil && old.Kind == jsontree.Array:
		old.Items = append(old.Items, v)
		return append(path[:len(path):len(path)], strconv.Itoa(len(old.Items)-1))
	case appends && old != nil:
	case old != nil:
		named := *v
		named.Name, named.Fold = old.Name, old.Fold
		*old = named
	case outer.Kind == jsontree.Object || outer.Kind == jsontree.Array:
		named := *v
		named.Name, named.Fold = step, naming.Fold(step)
		if outer.Kind == jsontree.Array {
			named.Name, named.Fold = "", ""
		}
		outer.Items = append(outer.Items, &named)
	}
	return path
}

// around returns value v at a path of the document as the member of the objects around it. Of these objects it has
// only the members that mark a text: types, roles, names and identifiers.
func (d *document) around(path []string, v *event.Node) *event.Node {
	nodes := make([]*event.Node, len(path))
	for i, n := 0, d.root; i < len(path); i++ {
		nodes[i], n = n, child(n, path[i])
	}
	for i := len(path) - 1; i >= 0; i-- {
		step := path[i]
		if isIndex(step) {
			// The element of an array has the name of the array, and the marks of the object that it is in.
			continue
		}
		member := *v
		member.Name, member.Fold = step, naming.Fold(step)
		v = &event.Node{Kind: jsontree.Object, Items: append(marksOf(nodes[i]), &member)}
	}
	return v
}

// isIndex reports whether a step of a path is an index of an array.
func isIndex(step string) bool {
	_, err := strconv.Atoi(step)
	return err == nil
}

// marksOf returns the members of object o that mark the texts in it.
func marksOf(o *event.Node) []*event.Node {
	if o == nil || o.Kind != jsontree.Object {
		return nil
	}
	var out []*event.Node
	for _, m := range o.Items[:min(len(o.Items), maxScanned)] {
		id := m.Fold == "id" || strings.HasSuffix(m.Fold, "id")
		if m.Kind == jsontree.String && (id || isDiscriminator(m.Fold) || speakerMembers[m.Fold] || isCallName(m.Fold)) || m.Kind == jsontree.Object && speakerMembers[m.Fold] {
			out = append(out, m)
		}
	}
	return out
}
