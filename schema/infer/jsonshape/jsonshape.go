// Package jsonshape keeps what messages in JSON have in common: evidence, as package infer
// has it of protobuf messages.
//
// A Set groups messages by the place that they come from, and by a discriminator: a member
// such as "type" or "op" with few distinct texts. Of each group it has a Shape: the members
// of the objects, how often each was seen, and which kinds of values it has. Sets merge in
// any order, and are read and written as JSON as a part of infer.Evidence. Package messages
// fills and prints them.
//
// Limits: 256 places, 48 values of a discriminator, 20,000 members of objects.
package jsonshape

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"unwire/decode/jsontree"
)

const (
	// maxPlaces is how many places are told apart.
	maxPlaces = 256

	// maxKinds is how many values a discriminator has at most.
	maxKinds = 48

	// maxNodes bounds the members of all shapes.
	maxNodes = 20_000

	// maxText bounds the texts that are read from JSON, in bytes.
	maxText = 1 << 16

	// maxCount bounds the numbers that are read from JSON, so that sums do not overflow.
	maxCount = 1 << 52
)

// discriminators are the members that say of which kind a message is, in the order in which
// they are looked for.
var discriminators = []string{"type", "op", "event", "method", "kind", "action", "cmd", "command", "msg", "t", "@type", "__typename"}

// kindText matches a text that may name a kind of message.
var kindText = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_.:/$-]{0,63}$`)

// A Set is the shapes of messages, in groups. Make one with NewSet.
type Set struct {
	places map[string]*place
	nodes  int // of all shapes
}

// A place is where messages come from.
type place struct {
	Name string `json:"name"` // of a message type

	// Groups are the shapes by discriminator, as in "type=join"; "" is without.
	Groups map[string]*Shape `json:"groups"`

	// TooMany says that there were more values of the discriminator than groups.
	TooMany bool `json:"too_many,omitempty"`
}

// NewSet returns an empty set.
func NewSet() *Set { return &Set{places: map[string]*place{}} }

// Len counts the places.
func (s *Set) Len() int { return len(s.places) }

// Add enters a message, which is an object, of a place whose messages have a name. It
// reports false if there are too many places.
func (s *Set) Add(at, name string, v jsontree.Value) bool {
	p := s.place(at, name)
	if p == nil {
		return false
	}
	s.add(p.group(groupOf(v)), v, 0)
	return true
}

// place is the place of a key, which is made; nil if there is no room.
func (s *Set) place(at, name string) *place {
	p := s.places[at]
	if p == nil && len(s.places) < maxPlaces {
		p = &place{Name: name, Groups: map[string]*Shape{}}
		s.places[at] = p
	}
	return p
}

// group is the shape of a group, which is made, or if there is no room that of no group.
func (p *place) group(name string) *Shape {
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

// Merge adds what another set has, which stays as it is.
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

// A Group is messages of one kind.
type Group struct {
	// Place is where they come from, and Name what is made of it for a message type.
	Place, Name string

	// Member and Value are the discriminator and its text; "" if there is none.
	Member, Value string

	Shape *Shape
}

// Groups returns the groups by place and value. If the discriminator of a place has too
// many values for the messages that there are, it is none, and all are one group.
func (s *Set) Groups() []Group {
	var list []Group
	for _, at := range sorted(s.places) {
		p := s.places[at]
		messages := int64(0)
		for _, sh := range p.Groups {
			messages += sh.Objects
		}
		groups := p.Groups
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

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// MarshalJSON writes the set; the same set is the same JSON.
func (s *Set) MarshalJSON() ([]byte, error) { return json.Marshal(s.places) }

// UnmarshalJSON reads what MarshalJSON wrote, perhaps by another program.
//
// Errors: what no messages can have left.
func (s *Set) UnmarshalJSON(data []byte) error {
	*s = *NewSet()
	if err := json.Unmarshal(data, &s.places); err != nil {
		return fmt.Errorf("JSON messages: %w", err)
	}
	if len(s.places) > maxPlaces {
		return fmt.Errorf("JSON messages: more than %d places", maxPlaces)
	}
	for at, p := range s.places {
		if p == nil || len(at)+len(p.Name) > maxText || p.Groups == nil || len(p.Groups) > maxKinds+2 || !isName(p.Name) {
			return fmt.Errorf("JSON messages: the place %.80q", at)
		}
		for group, sh := range p.Groups {
			member, value, found := strings.Cut(group, "=")
			if group != "" && (!found || !slices.Contains(discriminators, member) || !kindText.MatchString(value)) {
				return fmt.Errorf("JSON messages: the group %.80q", group)
			}
			if err := s.checkShape(sh, 0); err != nil {
				return fmt.Errorf("JSON messages: the group %.80q of %.80q: %w", group, at, err)
			}
		}
	}
	return nil
}

// isName reports whether the name of a message type may begin with s.
func isName(s string) bool {
	for i := range len(s) {
		letter := s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z'
		if !letter && (i == 0 || s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return s != ""
}

var errRange = errors.New("counts out of range")

// checkShape checks a shape that was read, and counts its members.
func (s *Set) checkShape(sh *Shape, depth int) error {
	switch {
	case sh == nil:
		return errors.New("no shape")
	case sh.Objects < 0 || sh.Objects > maxCount:
		return errRange
	case len(sh.Members) > maxMembers || depth > maxDepth:
		return errors.New("too many members")
	}
	if sh.Members == nil {
		sh.Members = map[string]*Member{}
	}
	for name, m := range sh.Members {
		if s.nodes++; m == nil || len(name) > maxText || s.nodes > maxNodes {
			return errors.New("too many members")
		}
		if err := s.checkMember(m, depth); err != nil {
			return err
		}
	}
	return nil
}

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
