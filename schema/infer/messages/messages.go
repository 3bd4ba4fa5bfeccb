// Package messages infers the types of messages that are not part of an RPC: those of WebSockets, and those of
// connections without HTTP if the user says how the bytes divide into messages.
//
// var set messages.Set
// err := set.Add(ctx, capture, 0, evidence)
// in, err := infer.Infer(evidence, infer.Options{})
// err = messages.Write(in, evidence, "")
//
// Nothing names the types of such messages. A Set groups them by URL (identifiers in it are ignored), by
// direction, and by a discriminator. In JSON the discriminator is a member such as "type" or "op" with few
// distinct values. In protobuf it is field 1 if the other fields depend on its value. Each group becomes a
// message type. Protobuf messages that set one of several fields need no groups, because the inference finds the
// oneof.
//
// Add reads a capture. Protobuf messages become evidence of package infer under the name of their group; of JSON
// messages the evidence has the common shape. Write adds definitions for JSON messages to the inferred ones,
// with arbitrary field numbers. The commands schema infer and schema merge-evidence use this package.
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

// maxPlaces is the maximum number of combinations of URL template and direction.
const maxPlaces = 256

// A Set groups the messages of captures that do not belong to RPCs by URL template, direction and
// discriminator. The zero value is empty and ignores connections that are not WebSockets.
type Set struct {
	// Split selects how connections without HTTP are split into messages. Default: such connections are
	// ignored.
	Split decode.Splitting

	// Raw is the number of connections that were ignored, and Others the number of messages that are neither
	// protobuf nor a JSON object.
	Raw, Others int64

	// Undecoded has the errors of decoding with Split, at most 100.
	Undecoded []error

	// places has the places (URL template and direction) of messages, by place.key.
	places map[string]*place
}

// A place is a source of messages: a URL template and a direction.
type place struct {
	// key is the URL template together with the direction.
	key string
	// name is the prefix of the names of the place's message types.
	name string
	// proto finds out whether the protobuf messages of the place have a discriminator, i.e. a field that
	// selects the message type.
	proto kinds
}

// wanted reports whether an exchange has messages that are not RPCs. It counts the connections that are
// ignored.
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

// Add adds the messages in a capture to the evidence. If id is not 0, it reads only the exchange with
// that number.
//
// Errors: if src cannot be read; messages read before the error have been added.
func (s *Set) Add(ctx context.Context, src captures.Capture, id int64, to *infer.Evidence) error {
	return s.AddTo(ctx, src, id, func(*decode.Exchange) *infer.Evidence { return to })
}

// AddTo is Add with separate evidence for each exchange, which evidenceOf returns.
func (s *Set) AddTo(ctx context.Context, src captures.Capture, id int64, evidenceOf func(*decode.Exchange) *infer.Evidence) error {
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

	observe := func(ex *decode.Exchange, f *decode.Frame) error { return s.observe(ex, f, evidenceOf(ex).JSON()) }

	// The first pass finds the discriminators of protobuf messages, the second groups the messages by them.
	for _, id := range ids {
		damage = cmp.Or(damage, s.each(ctx, src, id, observe, true))
	}
	for _, p := range s.places {
		p.proto.decided = p.proto.discriminates()
	}

	enter := func(ex *decode.Exchange, f *decode.Frame) error {
		if p := s.place(ex, f.Dir); p != nil && f.Tree != nil {
			// A message that cannot be parsed was reported when it was decoded.
			_ = evidenceOf(ex).Add(p.proto.rootOf(p.name, f.Tree), f.Data)
		}
		return nil
	}
	for _, id := range ids {
		damage = cmp.Or(damage, s.each(ctx, src, id, enter, false))
	}
	return damage
}

// each calls do for each message of an exchange. first is set in the first of several passes, in which decoding
// errors are recorded.
func (s *Set) each(ctx context.Context, src captures.Capture, id int64, do func(*decode.Exchange, *decode.Frame) error, first bool) error {
	ex, err := decode.EachFrame(ctx, src, id, decode.Options{NoInner: true, Split: s.Split}, func(ex *decode.Exchange, f *decode.Frame) error {
		if err := ctx.Err(); err != nil || !ex.IsMessage(f) {
			return err
		}
		return do(ex, f)
	})
	// The second pass meets the same errors.
	const maxUndecoded = 100
	if first && ex != nil && ex.Err != nil && s.Split != "" && !errors.Is(err, captures.ErrDamaged) && len(s.Undecoded) < maxUndecoded {
		s.Undecoded = append(s.Undecoded, ex.Err)
	}
	return err
}

// place returns the place for messages of an exchange in one direction, or nil if there are too many places.
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

// observe adds a message to the summary of JSON messages, or to the statistics for finding a discriminator in
// protobuf messages.
func (s *Set) observe(ex *decode.Exchange, f *decode.Frame, to *jsonshape.Set) error {
	p := s.place(ex, f.Dir)
	switch {
	case p == nil:
		s.Others++
	case f.Tree != nil:
		p.proto.observe(f.Tree)
	default:
		// Arrays and plain values have no members to describe.
		v, err := jsontree.Parse(f.Data)
		if err != nil || v.Kind() != jsontree.Object || !to.Add(p.key, p.name, v) {
			s.Others++
		}
	}
	return nil
}
