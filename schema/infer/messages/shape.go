package messages

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"unwire/decode/jsontree"
)

const (
	// maxNodes bounds the members of all shapes.
	maxNodes = 20_000

	// maxMembers is how many names an object has before it is taken for a map.
	maxMembers = 200

	// maxShapeDepth is how deep objects are looked into.
	maxShapeDepth = 24
)

// discriminators are the members that say of which kind a message is, in the order in which
// they are looked for.
var discriminators = []string{"type", "op", "event", "method", "kind", "action", "cmd", "command", "msg", "t", "@type", "__typename"}

// kindText matches a text that may name a kind of message.
var kindText = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_.:/$-]{0,63}$`)

// A shape is what objects at one place have in common: their members with the kinds of
// their values. Shapes merge in any order.
type shape struct {
	objects int64
	members map[string]*member

	// open says that the objects have too many names, or are too deep.
	open bool
}

// A member is what the values of one name have in common, or the elements of arrays.
type member struct {
	seen int64
	kind [jsontree.Object + 1]int64 // values of each kind

	// Of the numbers: whether one is no 64-bit integer.
	fractional bool

	object *shape  // of the values that are objects
	items  *member // of the elements of those that are arrays
}

// groupOf is the group of a message: the discriminator and its value, or "".
func groupOf(v jsontree.Value) string {
	byName := map[string]string{}
	for m := range v.Items() {
		name := m.Name()
		if m.Kind() == jsontree.String && slices.Contains(discriminators, name) {
			byName[name] = m.Text()
		}
	}
	for _, name := range discriminators {
		if text, ok := byName[name]; ok && kindText.MatchString(text) {
			return name + "=" + text
		}
	}
	return ""
}

// addJSON enters a message.
func (s *Set) addJSON(p *place, v jsontree.Value) {
	group := groupOf(v)
	if _, known := p.json[group]; !known && len(p.json) > maxKinds {
		p.tooMany, group = true, ""
	}
	sh := p.json[group]
	if sh == nil {
		sh = newShape()
		p.json[group] = sh
	}
	s.addObject(sh, v, 0)
}

func newShape() *shape { return &shape{members: map[string]*member{}} }

// addObject enters an object.
func (s *Set) addObject(sh *shape, v jsontree.Value, depth int) {
	sh.objects++
	if depth >= maxShapeDepth {
		sh.open = true
		return
	}
	seen := map[string]bool{}
	for item := range v.Items() {
		name := item.Name()
		m := sh.members[name]
		if m == nil {
			if len(sh.members) >= maxMembers || s.nodes >= maxNodes {
				sh.open = true
				continue
			}
			s.nodes++
			m = &member{}
			sh.members[name] = m
		}
		if !seen[name] {
			seen[name] = true
			m.seen++
		}
		s.addValue(m, item, depth)
	}
}

// addValue enters a value.
func (s *Set) addValue(m *member, v jsontree.Value, depth int) {
	m.kind[v.Kind()]++
	switch v.Kind() {
	case jsontree.Number:
		if _, err := strconv.ParseInt(v.Text(), 10, 64); err != nil {
			m.fractional = true
		}
	case jsontree.Object:
		if m.object == nil {
			m.object = newShape()
		}
		s.addObject(m.object, v, depth+1)
	case jsontree.Array:
		if m.items == nil {
			m.items = &member{}
		}
		for item := range v.Items() {
			m.items.seen++
			if depth < maxShapeDepth {
				s.addValue(m.items, item, depth+1)
			}
		}
	}
}

// groups are the groups of a place. If the discriminator has too many values for what there
// is, it is none, and all messages are one group.
func (p *place) groups() map[string]*shape {
	messages := int64(0)
	for _, sh := range p.json {
		messages += sh.objects
	}
	if !p.tooMany && int64(len(p.json)) <= max(8, messages/2) {
		return p.json
	}
	all := newShape()
	for _, group := range slices.Sorted(maps.Keys(p.json)) {
		all.merge(p.json[group])
	}
	return map[string]*shape{"": all}
}

// merge adds what another shape has.
func (sh *shape) merge(o *shape) {
	sh.objects += o.objects
	sh.open = sh.open || o.open
	for name, om := range o.members {
		m := sh.members[name]
		if m == nil {
			if len(sh.members) >= maxMembers {
				sh.open = true
				continue
			}
			m = &member{}
			sh.members[name] = m
		}
		m.merge(om)
	}
}

func (m *member) merge(o *member) {
	m.seen += o.seen
	m.fractional = m.fractional || o.fractional
	for i, n := range o.kind {
		m.kind[i] += n
	}
	if o.object != nil {
		if m.object == nil {
			m.object = newShape()
		}
		m.object.merge(o.object)
	}
	if o.items != nil {
		if m.items == nil {
			m.items = &member{}
		}
		m.items.merge(o.items)
	}
}

// kindName names the group of a discriminator and its value.
func kindName(group string) string {
	_, value, _ := strings.Cut(group, "=")
	return camel(value)
}
