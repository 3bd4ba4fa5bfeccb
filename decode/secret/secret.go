// Package secret finds and removes secrets in existing captures. Audit lists probable secrets, Count summarizes
// the list, Clean writes a copy of the capture without them, and a View is such a copy without a file:
//
//	findings, err := secret.Audit(ctx, capture, redactor, &secret.Rules{})
//	fmt.Println(secret.Count(findings).Values)
//
// The recorder searches raw bytes (redact.Redactor) and never decodes. This package applies the same rules to
// decoded data: to decompressed frames and to messages inside text encodings. In addition it replaces secret
// fields, which a schema declares as secret whatever their values look like (Rules).
//
// Clean replaces values and preserves lengths and chunk boundaries. It edits an exchange's URL and headers if
// they contain a message. It can omit bytes that cannot be searched, and counts them. The commands audit, redact
// and export use this package.
//
// Source: captures/README.md#redaction
package secret

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/decode"
)

// Rules for the fields of decoded messages. They complement those of package redact.
const (
	// ruleField: the Rules declare the field as secret.
	ruleField redact.Rule = "field"

	// ruleName: the name of the field suggests a secret.
	ruleName redact.Rule = "field-name"

	// ruleUnknown: the field has no definition and looks like a token, in a message that has secret fields.
	ruleUnknown redact.Rule = "field-unknown"
)

// Rules describe which fields are secret. The zero value describes none.
type Rules struct {
	// Fields are the fields that contain secrets. For a field with a message, all texts in that message are
	// secret.
	Fields map[protoreflect.FullName]bool

	// FrameType, if not nil, returns the type of the messages in a call's frames, or nil.
	FrameType func(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor

	// InnerType, if not nil, returns the type of the messages inside fields of frames, or nil.
	InnerType func(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor
}

// frameType returns the type of the messages in a call's frames, or nil.
func (r *Rules) frameType(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
	if r.FrameType == nil {
		return nil
	}
	return r.FrameType(call, dir)
}

// innerType returns the type of the messages that are encoded inside fields of a call's frames, or nil.
func (r *Rules) innerType(call decode.Call, dir captures.Direction) protoreflect.MessageDescriptor {
	if r.InnerType == nil {
		return nil
	}
	return r.InnerType(call, dir)
}
