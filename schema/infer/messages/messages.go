// Package messages infers the messages of exchanges that are no calls: of WebSockets, and of
// connections without HTTP if a user says how these divide into messages.
//
// Nothing names the types of such messages. A Set groups them by the URL, whose parts that
// look like identifiers count as one, by direction, and by a discriminator. In JSON that is
// a member such as "type" or "op" with few distinct texts. In protobuf it is field 1, if it
// has few distinct values on which it depends what other fields there are: an enum of kinds.
// Each group is a message type of its own. Protobuf messages that set one field of several
// need no groups: the inference finds the oneof, each member of which has a type already.
//
// Add reads a capture: protobuf messages become evidence of package infer, under the name of
// the group, and so does what JSON messages have in common. Write adds the latter to what
// was inferred. JSON has names and no numbers, so the numbers are made up. The command
// schema infer and schema merge-evidence are the users.
//
// Limits: 256 places, 48 values of a discriminator, and those of package jsonshape.
package messages

import (
	"cmp"
	"context"
	"errors"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/jsontree"
	"unwire/schema/infer"
	"unwire/schema/infer/jsonshape"
)

// maxPlaces is how many URLs and directions are told apart.
const maxPlaces = 256

// A Set is the messages of captures, in groups. The zero value is empty, and splits
// nothing.
type Set struct {
	// Split says how the bytes of connections without HTTP divide into messages. Default:
	// those that are no WebSockets are left out.
	Split decode.Splitting

	// Raw counts the connections that were left out, and Others the messages that are
	// neither protobuf nor an object of JSON.
	Raw, Others int64

	// Undecoded is what could not be decoded because of Split.
	Undecoded []error

	places map[string]*place
}

// A place is where messages of one direction come from.
type place struct {
	key   string
	name  string // of a message type
	proto kinds
}

// wanted reports whether the messages of an exchange are known.
func (s *Set) wanted(ex *captures.Exchange) bool {
	switch {
	case ex.Transport == captures.HTTP:
		return false
	case ex.Transport == captures.WebSocket || s.Split != "":
		return true
	}
	s.Raw++
	return false
}

// Add reads the exchanges of a capture, or only the one with the number id if that is not
// 0. Protobuf messages are entered into the evidence.
//
// Errors: where src cannot be read; what was read until then is there.
func (s *Set) Add(ctx context.Context, src captures.Capture, id int64, to *infer.Evidence) error {
	var ids []int64
	var damage error
	if id != 0 {
		ex, err := src.Exchange(ctx, id)
		if err != nil {
			return err
		}
		if s.wanted(ex) {
			ids = append(ids, id)
		}
	} else {
		for ex, err := range src.Exchanges(ctx) {
			if err != nil {
				damage = err
				break
			}
			if s.wanted(ex) {
				ids = append(ids, ex.ID)
			}
		}
	}
	observe := func(ex *decode.Exchange, f *decode.Frame) error { return s.observe(ex, f, to.JSON()) }

	// The discriminator of protobuf messages is known when all have been seen.
	for _, id := range ids {
		damage = cmp.Or(damage, s.each(ctx, src, id, observe, true))
	}
	for _, p := range s.places {
		p.proto.decided = p.proto.discriminates()
	}
	enter := func(ex *decode.Exchange, f *decode.Frame) error {
		if p := s.place(ex, f.Dir); p != nil && f.Tree != nil {
			// What is no message was reported when it was decoded.
			_ = to.Add(p.proto.rootOf(p.name, f.Tree), f.Data)
		}
		return nil
	}
	for _, id := range ids {
		damage = cmp.Or(damage, s.each(ctx, src, id, enter, false))
	}
	return damage
}

// each calls do with the messages of an exchange.
func (s *Set) each(ctx context.Context, src captures.Capture, id int64, do func(*decode.Exchange, *decode.Frame) error, first bool) error {
	ex, err := decode.EachFrame(ctx, src, id, decode.Options{NoInner: true, Split: s.Split}, func(ex *decode.Exchange, f *decode.Frame) error {
		if err := ctx.Err(); err != nil || !ex.IsMessage(f) {
			return err
		}
		return do(ex, f)
	})
	const maxUndecoded = 100
	if first && ex != nil && ex.Err != nil && s.Split != "" && !errors.Is(err, captures.ErrDamaged) && len(s.Undecoded) < maxUndecoded {
		s.Undecoded = append(s.Undecoded, ex.Err)
	}
	return err
}

// place is where a direction of an exchange is; nil if there are too many places.
func (s *Set) place(ex *decode.Exchange, dir captures.Direction) *place {
	url, name := templateOf(ex.URL)
	key := url + " " + dir.String()
	p := s.places[key]
	if p == nil && len(s.places) < maxPlaces {
		if s.places == nil {
			s.places = map[string]*place{}
		}
		word := "Up"
		if dir == captures.Down {
			word = "Down"
		}
		p = &place{key: key, name: name + word}
		s.places[key] = p
	}
	return p
}

// observe looks at a message.
func (s *Set) observe(ex *decode.Exchange, f *decode.Frame, to *jsonshape.Set) error {
	p := s.place(ex, f.Dir)
	switch {
	case p == nil:
		s.Others++
	case f.Tree != nil:
		p.proto.observe(f.Tree)
	default:
		v, err := jsontree.Parse(f.Data)
		if err != nil || v.Kind() != jsontree.Object || !to.Add(p.key, p.name, v) {
			s.Others++
		}
	}
	return nil
}
