package infer

import (
	"strings"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// Probabilities of well-known types that the bytes alone cannot prove. Such types are mentioned in comments,
// but never declared.
const (
	// statusP is the probability of google.rpc.Status for messages with a code, a text, and details that are
	// all Any.
	statusP = 0.9
	// maskP is the probability of FieldMask for messages that are a list of names with dots or underscores.
	maskP = 0.4
	// wrapperP is the probability of a wrapper such as StringValue for messages with one scalar.
	wrapperP = 0.2
	// emptyWrapperP is the same probability if some of the messages are empty, which is usual for wrappers
	// only.
	emptyWrapperP = 0.4
	// mostCode is the maximum value of google.rpc.Code.
	mostCode = 16
)

// noteResemblance returns the well-known type that the messages may be of although it cannot be declared, with
// a comment. The result is zero if there is none.
func (c *class) noteResemblance() wellKnown {
	switch {
	case c.isStatus():
		return wellKnown{"google.rpc.Status", "", statusP, "Looks like a google.rpc.Status."}
	case c.isMask():
		return wellKnown{"google.protobuf.FieldMask", "", maskP, "May be a google.protobuf.FieldMask."}
	}
	name := c.wrapperName()
	if name == "" {
		return wellKnown{}
	}
	k := wellKnown{"google.protobuf." + name, "", wrapperP, ""}
	if c.fields[1].Seen < c.samples {
		k.p, k.note = emptyWrapperP, "May be a google.protobuf."+name+"; some are empty."
	}
	return k
}

// isStatus reports whether all messages can be a google.rpc.Status: a code, at most one text, and details.
func (c *class) isStatus() bool {
	details := c.fields[3]
	if len(c.numbers) > 3 || details == nil || details.childClass == nil || !details.isMessage() || !isAny(details.childClass.find()) {
		return false
	}
	for _, n := range c.numbers {
		f := c.fields[n]
		switch {
		case f.judgement.Odd > 0:
			return false
		case n == 1 && (f.judgement.Kind != wire.KindVarint || f.Varint.Max > mostCode || f.Varint.Negative > 0):
			return false
		case n == 2 && f.judgement.Kind != wire.KindString, n > 3:
			return false
		}
	}
	return c.fields[1] != nil
}

// isMask reports whether c may be a google.protobuf.FieldMask: it contains only strings that are field
// paths.
func (c *class) isMask() bool {
	f := c.fields[1]
	if len(c.numbers) != 1 || f == nil || f.judgement.Kind != wire.KindString || f.judgement.Odd > 0 {
		return false
	}
	list, _ := f.Len.Examples()
	// A single name without separators could be any word.
	joined := false
	for _, s := range list {
		if strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_.") != "" || s[0] < 'a' || s[len(s)-1] == '.' {
			return false
		}
		joined = joined || strings.ContainsAny(s, "_.")
	}
	return joined && len(list) > 1
}

// wrapperName returns the name of the wrapper type, such as StringValue, that c may be, or "".
func (c *class) wrapperName() string {
	f := c.fields[1]
	if !c.hasOnly(1) || f == nil {
		return ""
	}
	switch f.judgement.Kind {
	case wire.KindString:
		return "StringValue"
	case wire.KindBytes:
		return "BytesValue"
	case wire.KindVarint, wire.KindFixed32, wire.KindFixed64:
	default:
		return ""
	}
	return map[string]string{
		"bool": "BoolValue", "int32": "Int32Value", "int64": "Int64Value", "uint32": "UInt32Value", "uint64": "UInt64Value",
		"float": "FloatValue", "double": "DoubleValue",
	}[kind.NumberType(f.Field, f.judgement, kind.Use{Number: 1, Fresh: c.distinctShare()}).Name]
}

// A knownType is a well-known protobuf type that the message in a field may have.
type knownType struct {
	// Name is the full name of the type.
	Name string `json:"type"`
	// P is the probability of the well-known type, from 0 to 1.
	P float64 `json:"p"`
}

// knownType returns the well-known type of the class for FieldEvidence, or nil.
func (c *class) knownType() *knownType {
	k := c.find().known
	if k.name == "" {
		return nil
	}
	return &knownType{k.name, k.p}
}
