package infer

import (
	"strings"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// What is said of types that nothing in their bytes proves; none is written.
const (
	statusP       = 0.9 // a code, a text and details that are all Any
	maskP         = 0.4 // a list of names with dots or underscores
	wrapperP      = 0.2 // a message of one scalar
	emptyWrapperP = 0.4 // of which some are empty: what a wrapper is for
	mostCode      = 16  // of google.rpc.Code
)

// noteResemblance says of messages that no type is known of which one they may be.
func (c *class) noteResemblance() wellKnown {
	switch {
	case c.isStatus():
		return wellKnown{"google.rpc.Status", "", statusP, "Reads as a google.rpc.Status."}
	case c.isMask():
		return wellKnown{"google.protobuf.FieldMask", "", maskP, "May be a google.protobuf.FieldMask."}
	}
	name := c.wrapped()
	if name == "" {
		return wellKnown{}
	}
	k := wellKnown{"google.protobuf." + name, "", wrapperP, ""}
	if c.fields[1].Seen < c.samples {
		k.p, k.note = emptyWrapperP, "May be a google.protobuf."+name+"; some are empty."
	}
	return k
}

// isStatus reports whether all samples have a code, a text at most, and details.
func (c *class) isStatus() bool {
	details := c.fields[3]
	if len(c.numbers) > 3 || details == nil || details.kid == nil || !details.likely() || !isAny(details.kid.find()) {
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

// isMask reports whether c is nothing but names as they stand in masks.
func (c *class) isMask() bool {
	f := c.fields[1]
	if len(c.numbers) != 1 || f == nil || f.judgement.Kind != wire.KindString || f.judgement.Odd > 0 {
		return false
	}
	list, _ := f.Len.Examples()
	joined := false
	for _, s := range list {
		if strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_.") != "" || s[0] < 'a' || s[len(s)-1] == '.' {
			return false
		}
		joined = joined || strings.ContainsAny(s, "_.")
	}
	return joined && len(list) > 1
}

// wrapped is the name of the wrapper that c's fields are like, or "".
func (c *class) wrapped() string {
	f := c.fields[1]
	if !c.only(1) || f == nil {
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
	}[kind.NumberType(f.Field, f.judgement, kind.Use{Number: 1, Fresh: c.fresh()}).Name]
}

// A knownType is a type of protobuf's own that a message may be of.
type knownType struct {
	Name string  `json:"type"`
	P    float64 `json:"p"`
}

// knownType is what is known of the class for the evidence list.
func (c *class) knownType() *knownType {
	k := c.find().known
	if k.name == "" {
		return nil
	}
	return &knownType{k.name, k.p}
}
