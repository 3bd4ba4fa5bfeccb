package keyed

import (
	"strconv"
	"strings"

	"unwire/decode/jsontree"
	"unwire/decode/transcript/event"
	"unwire/decode/transcript/naming"
)

// A document has the objects that patches have built so far, by their paths. A patch of a text is read as if the
// server had sent the objects around the text again, with only their marks and the text in them.
type document struct {
	// objects are the objects by path; the steps of a path are joined by slashes.
	objects map[string]*event.Node

	// last is the path of the last patch, which applies to the following events that have only a value.
	last []string
}

const (
	// maxObjects is the maximum number of objects of a document. Later ones are not kept.
	maxObjects = 1 << 14

	// maxSteps is the maximum number of steps of a patch's path.
	maxSteps = 40
)

// A patch is a change of a document (RFC 6902, GraphQL incremental delivery): the values that are set or appended at
// a path.
type patch struct {
	// path are the steps from the root of the document.
	path []string

	// values are the new values; several ones follow each other in an array.
	values []*event.Node

	// appends means that the value continues a text, or is added to the end of an array.
	appends bool
}

// patchOf returns the patch that object n is; ok is false if it is not one. last is the path of the last patch.
func patchOf(n *event.Node, last []string) (p patch, ok bool) {
	op := ""
	for _, m := range n.Items {
		switch m.Fold {
		case "op", "o":
			op = m.Text
		case "path", "p":
			if p.path, ok = stepsOf(m); !ok {
				return patch{}, false
			}
		case "value", "v", "data":
			p.values = []*event.Node{m}
		case "items":
			p.values, p.appends = m.Items, true
		}
	}
	if !ok && last != nil && len(n.Items) == 1 && n.Items[0].Fold == "v" {
		// Only the first of several pieces of a text has the path.
		return patch{last, p.values, true}, true
	}
	// A list of steps identifies a patch, but a string may be any path if there is no operation.
	isList := n.Member("path") != nil && n.Member("path").Kind == jsontree.Array
	if !ok || p.values == nil || op == "" && !isList || len(p.path) > maxSteps {
		return patch{}, false
	}
	p.appends = p.appends || op == "append" || strings.HasSuffix(n.String("path"), "/-")
	return p, true
}

// stepsOf returns the steps of a path: a JSON pointer, or a list of names and indexes.
func stepsOf(m *event.Node) (steps []string, ok bool) {
	switch m.Kind {
	case jsontree.String:
		if m.Text == "" {
			return nil, true
		}
		rest, ok := strings.CutPrefix(m.Text, "/")
		return strings.Split(rest, "/"), ok
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

// visitPatch finds the pieces in the values of a patch.
func (f *finder) visitPatch(p patch, sc scope) {
	for _, v := range p.values {
		f.document.last = p.path
		f.document.keep(p.path, v)
		inner := sc
		inner.delta = sc.delta || p.appends && v.Kind == jsontree.String
		f.visitValue(f.document.around(p.path, v), inner)
	}
}

// keep keeps the objects in a value that a patch sets.
func (d *document) keep(path []string, v *event.Node) {
	if d.objects == nil {
		d.objects = make(map[string]*event.Node)
	}
	if len(path) > maxSteps || len(d.objects) >= maxObjects {
		return
	}
	switch v.Kind {
	case jsontree.Object:
		d.objects[strings.Join(path, "/")] = v
		for _, m := range v.Items {
			d.keep(append(path[:len(path):len(path)], m.Name), m)
		}
	case jsontree.Array:
		for i, e := range v.Items {
			d.keep(append(path[:len(path):len(path)], strconv.Itoa(i)), e)
		}
	}
}

// around returns value v at a path of the document as the member of the objects around it. Of these objects it has
// only the members that mark a text: types, roles, names and identifiers.
func (d *document) around(path []string, v *event.Node) *event.Node {
	for i := len(path) - 1; i >= 0; i-- {
		step := path[i]
		if isIndex(step) {
			// The element of an array has the name of the array, and the marks of the object that it is in.
			continue
		}
		member := *v
		member.Name, member.Fold = step, naming.Fold(step)
		v = &event.Node{Kind: jsontree.Object, Items: append(d.marks(path[:i]), &member)}
	}
	return v
}

// isIndex reports whether a step of a path is an index of an array.
func isIndex(step string) bool {
	_, err := strconv.Atoi(step)
	return err == nil || step == "-"
}

// marks returns the members of the object at a path that mark the texts in it.
func (d *document) marks(path []string) []*event.Node {
	o := d.objects[strings.Join(path, "/")]
	if o == nil {
		return nil
	}
	var out []*event.Node
	for _, m := range o.Items {
		id := m.Fold == "id" || strings.HasSuffix(m.Fold, "id")
		if m.Kind == jsontree.String && (id || isDiscriminator(m.Fold) || speakerMembers[m.Fold] || isCallName(m.Fold)) || m.Kind == jsontree.Object && speakerMembers[m.Fold] {
			out = append(out, m)
		}
	}
	return out
}
