package jsonshape

import (
	"strconv"

	"unwire/decode/jsontree"
)

// Limits of a shape.
const (
	// maxMembers is the number of distinct names above which JSON objects are treated as maps with arbitrary
	// keys.
	maxMembers = 200

	// maxDepth is the nesting depth beyond which objects are not examined.
	maxDepth = 24
)

// A Shape summarizes the structure of JSON objects: their members and the types of their values.
type Shape struct {
	// Objects is the number of JSON objects that were added.
	Objects int64 `json:"objects" pb:"1"`
	// Members maps the names of members to their statistics.
	Members map[string]*Member `json:"members" pb:"2"`

	// Open is set if the objects have further names that are not in Members, or are nested too deeply.
	Open bool `json:"open,omitempty" pb:"3"`
}

// A Member summarizes the values of one member of JSON objects, or the elements of JSON arrays.
type Member struct {
	// Seen is the number of objects that contain the member or, for the elements of arrays, the number
	// of elements.
	Seen int64 `json:"seen" pb:"1"`
	// Kinds counts the values by JSON type.
	Kinds Kinds `json:"kinds" pb:"2"`

	// Fractional is set if a number is not a 64-bit integer.
	Fractional bool `json:"fractional,omitempty" pb:"3"`

	// Object summarizes the values that are objects. It may be nil.
	Object *Shape `json:"object,omitempty" pb:"4"`
	// Items summarizes the elements of arrays. It may be nil.
	Items *Member `json:"items,omitempty" pb:"5"`
}

// Kinds counts JSON values by type.
type Kinds struct {
	// Null is the number of null values.
	Null int64 `json:"null,omitempty" pb:"1"`
	// Bool is the number of booleans.
	Bool int64 `json:"bool,omitempty" pb:"2"`
	// Number is the number of JSON numbers.
	Number int64 `json:"number,omitempty" pb:"3"`
	// String is the number of JSON strings.
	String int64 `json:"string,omitempty" pb:"4"`
	// Array is the number of JSON arrays.
	Array int64 `json:"array,omitempty" pb:"5"`
	// Object is the number of JSON objects.
	Object int64 `json:"object,omitempty" pb:"6"`
}

// of returns the counter for values of a JSON type.
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

// newShape returns a Shape without objects.
func newShape() *Shape { return &Shape{Members: map[string]*Member{}} }

// add adds the JSON object v to a shape. depth is its nesting.
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
		// A name that is repeated in an object counts once.
		if !seen[name] {
			seen[name] = true
			m.Seen++
		}
		s.addValue(m, item, depth)
	}
}

// member returns the statistics of the member called name, which are created if needed. It returns nil if there
// are too many.
func (s *Set) member(sh *Shape, name string) *Member {
	m := sh.Members[name]
	if m != nil {
		return m
	}
	// Further members are dropped, and the shape says so.
	if len(sh.Members) >= maxMembers || s.nodes >= maxNodes {
		sh.Open = true
		return nil
	}
	s.nodes++
	m = &Member{}
	sh.Members[name] = m
	return m
}

// addValue adds the JSON value v to the statistics of a member. depth is its nesting.
func (s *Set) addValue(m *Member, v jsontree.Value, depth int) {
	*m.Kinds.of(v.Kind())++
	switch v.Kind() {
	case jsontree.Number:
		// Numbers beyond 64 bits count as fractional as well.
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

// merge adds the statistics of the shape o to sh. o is unchanged.
func (s *Set) merge(sh, o *Shape) {
	sh.Objects += o.Objects
	sh.Open = sh.Open || o.Open
	for _, name := range sorted(o.Members) {
		if m := s.member(sh, name); m != nil {
			s.mergeMember(m, o.Members[name])
		}
	}
}

// mergeMember adds the statistics of the member o to m. o is unchanged.
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
