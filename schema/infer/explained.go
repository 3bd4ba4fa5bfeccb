package infer

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// keepExplained changes the type of fields from message to bytes if no single message type can decode all
// payloads (fields of two wire types, groups, reserved field numbers). The inferred definitions then decode all
// recorded messages without errors.
//
// The types of whole messages cannot be bytes; their comments list the fields that are not decoded.
func (g *graph) keepExplained() {
	for changed := true; changed; {
		changed = false
		for _, c := range g.reachable() {
			for _, n := range c.numbers {
				f := c.fields[n]
				if f.childClass == nil || !f.isMessage() {
					continue
				}
				kid := f.childClass.find()
				why := kid.unreadable()
				if why == "" {
					continue
				}
				g.deep = g.deep || kid.isCut()
				f.forbidMessage()
				f.notMessage, changed = why, true
			}
		}
	}
}

// unreadable returns the reason why no message type can decode all messages of the class, or "".
func (c *class) unreadable() string {
	if c.root != "" {
		// Its own name says what it is, and more of it is explained by a definition than by none.
		return ""
	}
	if c.isCut() {
		return fmt.Sprintf("messages nested deeper than %d levels, which unwire did not decode", kind.MaxDepth)
	}
	for _, n := range c.numbers {
		f := c.fields[n]
		switch {
		case f.judgement.Kind == wire.KindGroup:
			return fmt.Sprintf("messages with a group, field %d, which proto3 cannot declare", n)
		case f.judgement.Odd > 0:
			return fmt.Sprintf("messages of more than one type: their field %d has two wire types", n)
		case isReserved(n):
			return fmt.Sprintf("messages with field %d, a number that is reserved to protobuf itself", n)
		}
	}
	return ""
}

// isCut reports whether the messages are nested so deeply that their fields were not examined.
func (c *class) isCut() bool { return c.atDepthLimit && len(c.numbers) == 0 }

// isReserved reports whether a field number is in the range 19000 to 19999, which protobuf reserves.
func isReserved(n int32) bool {
	return protowire.Number(n) >= protowire.FirstReservedNumber && protowire.Number(n) <= protowire.LastReservedNumber
}

// jsonDocumentBytesP is the probability that a field with one JSON document, in a message without other fields,
// is declared as bytes. Such messages carry data that was serialized elsewhere, and bytes are the safer
// declaration because any value fits.
const jsonDocumentBytesP = 0.55

// preferBytesForJSON changes the type from string to bytes for fields that contain one JSON document and are
// alone in their message.
func (g *graph) preferBytesForJSON() {
	for _, c := range g.reachable() {
		if c.root != "" || len(c.numbers) != 1 || c.numbers[0] != 1 {
			continue
		}
		f := c.fields[1]
		if f.Len == nil || f.chosen != nil || f.judgement.Kind != wire.KindString || f.Len.Forms.JSON < f.Len.N || f.Most > 1 {
			continue
		}

		// Only the two readings exchange their shares of the probability.
		v := f.judgement
		at := slices.IndexFunc(v.Others, func(a kind.Alternative) bool { return a.Kind == wire.KindBytes })
		if at < 0 {
			continue
		}
		v.Others = slices.Clone(v.Others)
		both := v.P + v.Others[at].P
		v.Kind, v.P = wire.KindBytes, round(both*jsonDocumentBytesP)
		v.Others[at].Kind, v.Others[at].P = wire.KindString, round(both*(1-jsonDocumentBytesP))
		f.judgement = v
	}
}
