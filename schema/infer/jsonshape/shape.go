package jsonshape

import (
	"strconv"

	"unwire/decode/jsontree"
)

const (
	// maxMembers is how many names an object has before it is taken for a map.
	maxMembers = 200

	// maxDepth is how deep objects are looked into.
	maxDepth = 24
)

// A Shape is what objects at one place have in common: their members with the kinds of
// their values.
type Shape struct {
	Objects int64              `json:"objects"`
	Members map[string]*Member `json:"members"`

	// Open says that the objects have more names, or are too deep.
	Open bool `json:"open,omitempty"`
}

// A Member is what the values of one name have in common, or the elements of arrays.
type Member struct {
	Seen  int64 `json:"seen"`
	Kinds Kinds `json:"kinds"`

	// Fractional says that one of the numbers is not a 64-bit integer.
	Fractional bool `json:"fractional,omitempty"`

	// Object is of the values that are objects, Items of the elements of arrays.
	Object *Shape  `json:"object,omitempty"`
	Items  *Member `json:"items,omitempty"`
}

// Kinds counts the values of each kind.
type Kinds struct {
	Null   int64 `json:"null,omitempty"`
	Bool   int64 `json:"bool,omitempty"`
	Number int64 `json:"number,omitempty"`
	String int64 `json:"string,omitempty"`
	Array  int64 `json:"array,omitempty"`
	Object int64 `json:"object,omitempty"`
}

// of is the count of a kind.
func (k *Kinds) of(kind jsontree.Kind) *int64 {
	switch kind {
	case jsontree.Null:
		return &k.Null
	case jsontree.Bool:
		return &k.Bool
	case jsontree.Number:
		return &k.Number
	case jsontree.String:
		return &k.String
	case jsontree.Array:
		return &k.Array
	}
	return &k.Object
}

func newShape() *Shape { return &Shape{Members: map[string]*Member{}} }

// add enters an object.
func (s *Set) add(sh *Shape, v jsontree.Value, depth int) {
	sh.Objects++
	if depth >= maxDepth {
		sh.Open = true
		return
	}
	seen := map[string]bool{}
	for item := range v.Items() {
		name := item.Name()
		m := s.member(sh, name)
		if m == nil {
			continue
		}
		if !seen[name] {
			seen[name] = true
			m.Seen++
		}
		s.addValue(m, item, depth)
	}
}

// member is the member of a name, which is made; nil if there is no room.
func (s *Set) member(sh *Shape, name string) *Member {
	m := sh.Members[name]
	if m != nil {
		return m
	}
	if len(sh.Members) >= maxMembers || s.nodes >= maxNodes {
		sh.Open = true
		return nil
	}
	s.nodes++
	m = &Member{}
	sh.Members[name] = m
	return m
}

// addValue enters a value.
func (s *Set) addValue(m *Member, v jsontree.Value, depth int) {
	*m.Kinds.of(v.Kind())++
	switch v.Kind() {
	case jsontree.Number:
		if _, err := strconv.ParseInt(v.Text(), 10, 64); err != nil {
			m.Fractional = true
		}
	case jsontree.Object:
		if m.Object == nil {
			m.Object = newShape()
		}
		s.add(m.Object, v, depth+1)
	case jsontree.Array:
		if m.Items == nil {
			m.Items = &Member{}
		}
		for item := range v.Items() {
			m.Items.Seen++
			if depth < maxDepth {
				s.addValue(m.Items, item, depth+1)
			}
		}
	}
}

// merge adds what another shape has, which stays as it is.
func (s *Set) merge(sh, o *Shape) {
	sh.Objects += o.Objects
	sh.Open = sh.Open || o.Open
	for _, name := range sorted(o.Members) {
		if m := s.member(sh, name); m != nil {
			s.mergeMember(m, o.Members[name])
		}
	}
}

func (s *Set) mergeMember(m, o *Member) {
	m.Seen += o.Seen
	m.Fractional = m.Fractional || o.Fractional
	for kind := jsontree.Null; kind <= jsontree.Object; kind++ {
		*m.Kinds.of(kind) += *o.Kinds.of(kind)
	}
	if o.Object != nil {
		if m.Object == nil {
			m.Object = newShape()
		}
		s.merge(m.Object, o.Object)
	}
	if o.Items != nil {
		if m.Items == nil {
			m.Items = &Member{}
		}
		s.mergeMember(m.Items, o.Items)
	}
}
