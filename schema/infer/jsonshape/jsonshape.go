// Package jsonshape summarizes JSON messages: it is for JSON what package infer's evidence is for protobuf.
//
// s := jsonshape.NewSet()
// s.Add("wss://host/chat down", "HostChatDown", value)
//
//	for _, g := range s.Groups() {
//	    fmt.Println(g.Member, g.Value, len(g.Shape.Members))
//	}
//
// A Set groups messages by their place and by a discriminator: a member such as "type" or "op" with few distinct
// values. Each group has a Shape: the members of the objects, how often each occurred, and the kinds of its
// values. Sets can be merged in any order, and are part of the JSON of infer.Evidence. Package messages fills
// and prints them.
//
// Limits: 256 places, 48 values of a discriminator, 20,000 members of objects.
package jsonshape

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"unwire/decode/jsontree"
)

// Limits of a Set.
const (
	// maxPlaces is the maximum number of places, i.e. of distinct combinations of URL template and direction.
	maxPlaces = 256

	// maxKinds is the maximum number of distinct values of a discriminator.
	maxKinds = 48

	// maxNodes is the maximum number of members in all shapes.
	maxNodes = 20_000

	// maxText is the maximum size in bytes of each text in stored evidence.
	maxText = 1 << 16

	// maxCount limits each number that is read from JSON, so that sums do not overflow.
	maxCount = 1 << 52
)

// discriminators are the names of JSON members that may tell the type of a message, in the order of preference.
var discriminators = []string{"type", "op", "event", "method", "kind", "action", "cmd", "command", "msg", "t", "@type", "__typename"}

// kindText matches a value of a discriminator, i.e. a text that may name a type of message.
var kindText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_.:/$-]{0,63}$`) })

// A Set summarizes the structure of JSON messages by where they occurred and by discriminator. Make one with
// NewSet.
type Set struct {
	// places has the places of messages. The key is URL template and direction.
	places map[string]*place
	// nodes is the number of members in all shapes, for the limit.
	nodes int
}

// A place is a source of JSON messages: a URL template and a direction.
type place struct {
	// Name is the prefix of the names of message types for this place.
	Name string `json:"name" pb:"1"`

	// Groups has the structure of messages by discriminator, such as "type=join". "" is for messages without
	// one.
	Groups map[string]*Shape `json:"groups" pb:"2"`

	// TooMany is set if the discriminator had more than maxKinds values.
	TooMany bool `json:"too_many,omitempty" pb:"3"`
}

// NewSet returns a Set without messages.
func NewSet() *Set { return &Set{places: map[string]*place{}} }

// Len returns the number of places (URL template and direction) with messages.
func (s *Set) Len() int { return len(s.places) }

// Add adds one JSON message, which must be an object. at is its place (URL template and direction), and name
// the prefix of the names of inferred message types. It returns false if there are too many places.
func (s *Set) Add(at, name string, v jsontree.Value) bool {
	p := s.place(at, name)
	if p == nil {
		return false
	}
	s.add(p.group(groupOf(v)), v, 0)
	return true
}

// place returns the place with the key at, which is created if needed. It returns nil if there are too many.
func (s *Set) place(at, name string) *place {
	p := s.places[at]
	if p == nil && len(s.places) < maxPlaces {
		p = &place{Name: name, Groups: map[string]*Shape{}}
		s.places[at] = p
	}
	return p
}

// group returns the shape (structure) of the messages with a discriminator such as "type=join", which is
// created if needed. If there are too many, it returns the shape of messages without a discriminator.
func (p *place) group(name string) *Shape {
	// Too many values: the member is probably not a discriminator.
	if _, known := p.Groups[name]; !known && len(p.Groups) > maxKinds {
		p.TooMany, name = true, ""
	}
	sh := p.Groups[name]
	if sh == nil {
		sh = newShape()
		p.Groups[name] = sh
	}
	return sh
}

// groupOf returns the discriminator of a message with its value, such as "type=join", or "".
func groupOf(v jsontree.Value) string {
	// The order of preference is that of discriminators, not of the message.
	byName := map[string]string{}
	for m := range v.Items() {
		name := m.Name()
		if m.Kind() == jsontree.String && slices.Contains(discriminators, name) {
			byName[name] = m.Text()
		}
	}
	for _, name := range discriminators {
		if text, ok := byName[name]; ok && kindText().MatchString(text) {
			return name + "=" + text
		}
	}
	return ""
}

// Merge adds the statistics of the messages in the set o, which is unchanged.
func (s *Set) Merge(o *Set) {
	for _, at := range sorted(o.places) {
		from := o.places[at]
		p := s.place(at, from.Name)
		if p == nil {
			continue
		}
		p.TooMany = p.TooMany || from.TooMany
		for _, group := range sorted(from.Groups) {
			s.merge(p.group(group), from.Groups[group])
		}
	}
}

// A Group is the JSON messages from one URL template and direction with the same value of the discriminator.
type Group struct {
	// Place is the URL template and direction, and Name the prefix of the names of message types.
	Place, Name string

	// Member is the name of the discriminator, and Value its value. Both are "" if there is none.
	Member, Value string

	// Shape summarizes the structure of the messages.
	Shape *Shape
}

// Groups returns the groups, sorted by place and value. If a place has too many values of the discriminator for
// its number of messages, all its messages form one group.
func (s *Set) Groups() []Group {
	var list []Group
	for _, at := range sorted(s.places) {
		p := s.places[at]
		messages := int64(0)
		for _, sh := range p.Groups {
			messages += sh.Objects
		}
		groups := p.Groups
		// One group for the whole place is more useful than one for each message.
		if p.TooMany || int64(len(groups)) > max(8, messages/2) {
			all := NewSet()
			one := newShape()
			for _, group := range sorted(groups) {
				all.merge(one, groups[group])
			}
			groups = map[string]*Shape{"": one}
		}
		for _, group := range sorted(groups) {
			member, value, _ := strings.Cut(group, "=")
			list = append(list, Group{at, p.Name, member, value, groups[group]})
		}
	}
	return list
}

// sorted returns the keys of a map in ascending order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// A Doc is the stored form of a Set: its places by URL template and direction.
type Doc map[string]*place

// Doc returns the stored form, which shares memory with the set. Equal sets have equal forms.
func (s *Set) Doc() Doc { return s.places }

// Set validates a Doc, which may come from an untrusted party, and converts it to a Set that shares
// memory with the Doc.
//
// Errors: if no messages can produce the counts.
func (d Doc) Set() (*Set, error) {
	s := NewSet()
	if len(d) > maxPlaces {
		return nil, fmt.Errorf("the statistics of JSON messages have more than %d paths", maxPlaces)
	}
	for at, p := range d {
		if p == nil || len(at)+len(p.Name) > maxText || p.Groups == nil || len(p.Groups) > maxKinds+2 || !isName(p.Name) {
			return nil, fmt.Errorf("the statistics of JSON messages at the path %.80q are malformed", at)
		}
		for group, sh := range p.Groups {
			// The key of a group must be one that groupOf returns.
			member, value, found := strings.Cut(group, "=")
			if group != "" && (!found || !slices.Contains(discriminators, member) || !kindText().MatchString(value)) {
				return nil, fmt.Errorf("the statistics of JSON messages at the path %.80q are grouped by %.80q, but must be grouped by a member that names the type of a message, such as type=ping for messages with \"type\": \"ping\"", at, group)
			}
			if err := s.checkShape(sh, 0); err != nil {
				return nil, fmt.Errorf("the statistics of JSON messages at the path %.80q, group %.80q: %w", at, group, err)
			}
		}
		s.places[at] = p
	}
	return s, nil
}

// Part returns a Set with only the messages of the place at. It shares memory with s.
func (s *Set) Part(at string) *Set {
	part := NewSet()
	if p := s.places[at]; p != nil {
		part.places[at] = p
	}
	return part
}

// Places returns the keys of all places (URL template and direction), sorted.
func (s *Set) Places() []string { return sorted(s.places) }

// isName reports whether s can be the prefix of the name of a message type.
func isName(s string) bool {
	for i := range len(s) {
		letter := s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z'
		if !letter && (i == 0 || s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return s != ""
}

// errRange is wrapped by the error for stored counts that no messages can produce.
var errRange = errors.New("a count is negative or too large")

// checkShape validates a stored shape and counts its members in s.nodes. depth is its nesting.
func (s *Set) checkShape(sh *Shape, depth int) error {
	switch {
	case sh == nil:
		return errors.New("the JSON type is missing")
	case sh.Objects < 0 || sh.Objects > maxCount:
		return errRange
	case len(sh.Members) > maxMembers || depth > maxDepth:
		return errors.New("the JSON object has too many members")
	}
	if sh.Members == nil {
		sh.Members = map[string]*Member{}
	}
	// Limits apply to the sum of all shapes in the file.
	for name, m := range sh.Members {
		if s.nodes++; m == nil || len(name) > maxText || s.nodes > maxNodes {
			return errors.New("the JSON object has too many members")
		}
		if err := s.checkMember(m, depth); err != nil {
			return err
		}
	}
	return nil
}

// checkMember validates a stored member and everything nested in it. depth is its nesting.
func (s *Set) checkMember(m *Member, depth int) error {
	for kind := jsontree.Null; kind <= jsontree.Object; kind++ {
		if n := *m.Kinds.of(kind); n < 0 || n > maxCount {
			return errRange
		}
	}
	if m.Seen < 0 || m.Seen > maxCount || depth > maxDepth+2 {
		return errRange
	}
	if m.Object != nil {
		if err := s.checkShape(m.Object, depth+1); err != nil {
			return err
		}
	}
	if m.Items != nil {
		return s.checkMember(m.Items, depth+1)
	}
	return nil
}
