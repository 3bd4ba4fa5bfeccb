// Package secret finds and removes secrets in captures that exist already. Audit lists
// what looks like a secret, Count sums the list up, Clean writes a copy of the capture
// without them, and a View is that copy without a file.
//
// A recorder looks for secrets in bytes (redact.Redactor) and never decodes. Here the
// same rules are applied to what was decoded, frames inflated and messages taken out of
// their text encodings. To that come secret fields: those of which definitions say that
// they hold a secret, whatever it looks like (Rules).
//
// Clean replaces values and keeps lengths and chunk boundaries. It changes the head of an
// exchange, which is its URL and headers, where a message stands in it. It omits bytes
// that the search cannot look into, and counts them.
//
// Source: captures/README.md#redaction
package secret

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/decode"
)

// Rules by decoding, beside those of captures.
const (
	// RuleField is for fields of which the definitions say that they hold a secret.
	ruleField redact.Rule = "field"

	// RuleName is for fields whose name says so.
	ruleName redact.Rule = "field-name"

	// RuleUnknown is for tokens in fields without definition, in a message that
	// holds secrets.
	ruleUnknown redact.Rule = "field-unknown"
)

// Rules say what is a secret where definitions are known. The zero value knows
// of none.
type Rules struct {
	// Fields are those that hold secrets; of a message, every text in it.
	Fields map[protoreflect.FullName]bool

	// FrameType, if set, returns the type of a call's frames, or nil.
	FrameType func(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor

	// InnerType, if set, returns that of messages inside fields of a frame.
	InnerType func(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor
}

// frameType is the type of a call's frames, or nil.
func (r *Rules) frameType(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
	if r.FrameType == nil {
		return nil
	}
	return r.FrameType(call, dir)
}

func (r *Rules) innerType(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
	if r.InnerType == nil {
		return nil
	}
	return r.InnerType(call, dir)
}
