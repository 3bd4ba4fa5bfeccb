package kind

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"

	"unwire/decode/value"
	"unwire/decode/wire"
)

// A Remark describes a well-known format (such as UUID) or message type (such as Timestamp) that a field's value
// resembles. It is a guess, and does not affect how the value is encoded.
type Remark struct {
	// Form is the format of a string, or the file format of bytes. Shape is the full name of a well-known type
	// that a message resembles, or "map entry". Note explains the form, the shape or a timestamp in words.
	Form, Shape, Note string

	// P is the probability of the shape, from 0 to 1; 0 without a shape.
	P float64
}

// Doubtful reports whether messages of other types often have the same fields, so that Shape is uncertain.
func (m Remark) Doubtful() bool { return m.Shape != "" && m.P < certain }

// certain is the minimum probability of a shape that is reported without its probability.
const certain = 0.6

// Remark returns a remark on the value of node i, decoded as the given kind and type.
//
// Limits: only a message's own fields and their fields are examined.
func (r *Reader) Remark(i int32, is wire.Kind, typ string) Remark {
	n := r.t.Node(i)
	switch is {
	case wire.KindString:
		if f, ok := value.FormOf(r.t.Payload(i)); ok {
			return Remark{Form: f.Name, Note: f.Note}
		}
	case wire.KindBytes:
		if n.Type == wire.Len {
			return Remark{Form: value.FileFormat(r.t.Payload(i))}
		}
	case wire.KindMessage:
		return r.shape(i)
	case wire.KindVarint, wire.KindFixed32, wire.KindFixed64:
		if n.Type != wire.Len && n.Type != wire.StartGroup && strings.HasPrefix(typ, "timestamp-") {
			return Remark{Note: value.TimeNote(r.t.Uint(i), typ)}
		}
	}
	return Remark{}
}

const (
	// mostShapeFields is the maximum number of fields of an examined message.
	mostShapeFields = 64

	// mostEntries is the maximum number of entries of a map that are examined.
	mostEntries = 16

	// leastEntries is the minimum number of entries of a map.
	leastEntries = 3
)

// shape detects the well-known type, such as google.protobuf.Timestamp, that the message in node i resembles.
func (r *Reader) shape(i int32) Remark {
	// The last occurrence of each number.
	var one, two, three int32 = wire.None, wire.None, wire.None

	count := 0
	for c := range r.t.Children(i) {
		n := r.t.Node(c)
		switch {
		case n.Type == wire.Garbage || !n.Sound():
			return Remark{}
		case n.Number == 1:
			one = c
		case n.Number == 2:
			two = c
		case n.Number == 3:
			three = c
		default:
			return Remark{}
		}
		if count++; count > mostShapeFields {
			return Remark{}
		}
	}

	// From the most specific shape to the least.
	if m, ok := r.secondsAndNanos(one, two, three, count); ok {
		return m
	}
	if three == wire.None {
		if name, ok := r.anyName(i); ok {
			return Remark{Shape: "google.protobuf.Any", Note: "of " + name, P: 0.98}
		}
	}
	if r.isStatus(i, one, three) {
		return Remark{Shape: "google.rpc.Status", Note: r.statusWord(one), P: 0.97}
	}
	if r.isEntry(i, one, two, count) {
		return Remark{Shape: "map entry", P: 0.75}
	}
	// These have one field, which is repeated.
	if two == wire.None && three == wire.None {
		if r.isStruct(i, count) {
			return Remark{Shape: "google.protobuf.Struct", P: 0.95}
		}
		if p := r.fieldMask(i); p > 0 {
			return Remark{Shape: "google.protobuf.FieldMask", P: p}
		}
	}
	return r.pooledShape(i)
}

// secondsAndNanos detects a Timestamp or Duration. one, two and three are the nodes of the fields with these
// numbers, and count is the number of fields. Seconds alone differ from other numbers only by their size, so a
// Duration needs plausible nanoseconds.
func (r *Reader) secondsAndNanos(one, two, three int32, count int) (Remark, bool) {
	if three != wire.None || one == wire.None || count > 2 || r.t.Node(one).Type != wire.Varint {
		return Remark{}, false
	}
	seconds, nanos := int64(r.t.Uint(one)), int64(0)
	if two != wire.None {
		if r.t.Node(two).Type != wire.Varint || count != 2 {
			return Remark{}, false
		}
		nanos = int64(r.t.Uint(two))
	}

	switch {
	case two == wire.None && count != 1, nanos >= 1e9, nanos <= -1e9:
		return Remark{}, false
	case seconds >= 1e9 && seconds < 3e9 && nanos >= 0:
		// Any number may be that large.
		p := 0.75
		if two != wire.None {
			p = 0.97
		}
		return Remark{Shape: "google.protobuf.Timestamp", Note: value.FormatTime(time.Unix(seconds, nanos)), P: p}, true
	case seconds > -1e8 && seconds < 1e8 && (nanos >= 1e6 || nanos <= -1e6) && (seconds <= 0 || nanos > 0) && (seconds >= 0 || nanos < 0):
		d := time.Duration(seconds)*time.Second + time.Duration(nanos)
		return Remark{Shape: "google.protobuf.Duration", Note: d.String(), P: 0.8}, true
	}

	return Remark{}, false
}

// AnyType returns the full name of the message inside node i, if the node resembles a google.protobuf.Any.
func (r *Reader) AnyType(i int32) (string, bool) { return r.anyName(i) }

// anyName returns the full name of the message type inside node i, if that looks like a google.protobuf.Any.
func (r *Reader) anyName(i int32) (string, bool) {
	name, ok := "", false
	for c := range r.t.Children(i) {
		n := r.t.Node(c)
		switch {
		case n.Type != wire.Len, n.Number == 1 && ok, n.Number > 2:
			return "", false
		case n.Number == 1:
			if name, ok = value.TypeURL(r.t.Payload(c)); !ok {
				return "", false
			}
		}
	}
	return name, ok
}

// isStatus reports whether node i looks like a google.rpc.Status with details. one and three are the nodes of
// fields 1 and 3.
func (r *Reader) isStatus(i, one, three int32) bool {
	if one == wire.None || three == wire.None || r.t.Node(one).Type != wire.Varint || r.t.Uint(one) > 16 {
		return false
	}
	for c := range r.t.Children(i) {
		n := r.t.Node(c)
		switch n.Number {
		case 2:
			if n.Type != wire.Len || !utf8.Valid(r.t.Payload(c)) {
				return false
			}
		case 3:
			if n.Type != wire.Len || !r.t.IsMessage(c) {
				return false
			}
			if _, ok := r.anyName(c); !ok {
				return false
			}
		}
	}
	return true
}

// rpcCodes are the names of gRPC's status codes.
var rpcCodes = [...]string{
	"ok", "canceled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists", "permission_denied", "resource_exhausted",
	"failed_precondition", "aborted", "out_of_range", "unimplemented", "internal", "unavailable", "data_loss", "unauthenticated",
}

// statusWord returns the name of the RPC status code whose number is in node one.
func (r *Reader) statusWord(one int32) string { return rpcCodes[r.t.Uint(one)] }

// isStruct reports whether node i, which has count fields, looks like a google.protobuf.Struct: entries of names
// and Values.
func (r *Reader) isStruct(i int32, count int) bool {
	if count == 0 {
		return false
	}
	hasTypes := false
	for c := range r.t.Children(i) {
		n := r.t.Node(c)

		// Struct has one field, a map, whose entries are messages of number 1.
		if n.Number != 1 || n.Type != wire.Len || !r.t.IsMessage(c) {
			return false
		}
		// An entry has exactly one key and one Value.
		key, value := wire.None, wire.None
		for e := range r.t.Children(c) {
			switch m := r.t.Node(e); {
			case m.Type != wire.Len:
				return false
			case m.Number == 1 && key == wire.None:
				key = e
			case m.Number == 2 && value == wire.None:
				value = e
			default:
				return false
			}
		}
		if key == wire.None || value == wire.None || !utf8.Valid(r.t.Payload(key)) || !r.t.IsMessage(value) || !r.isValue(value) {
			return false
		}

		// A Value of another type than null, which is field 1, makes the reading likely.
		for v := range r.t.Children(value) {
			hasTypes = hasTypes || r.t.Node(v).Number != 1
		}
	}

	return hasTypes
}

// isValue reports whether node i looks like a google.protobuf.Value.
func (r *Reader) isValue(i int32) bool {
	fields := 0
	for c := range r.t.Children(i) {
		n := r.t.Node(c)
		fields++
		ok := false
		switch n.Number {
		case 1:
			ok = n.Type == wire.Varint && r.t.Uint(c) == 0
		case 2:
			ok = n.Type == wire.I64
		case 3:
			ok = n.Type == wire.Len && utf8.Valid(r.t.Payload(c))
		case 4:
			ok = n.Type == wire.Varint && r.t.Uint(c) <= 1
		case 5, 6:
			ok = n.Type == wire.Len && r.t.IsMessage(c)
		}
		if !ok {
			return false
		}
	}
	return fields == 1
}

// isEntry reports whether node i looks like a map entry: one of several messages of the same field that consist of
// a key and a value each, without duplicate keys. one and two are its fields 1 and 2, and count is its number of
// fields.
func (r *Reader) isEntry(i, one, two int32, count int) bool {
	if i == 0 || count != 2 || one == wire.None || two == wire.None {
		return false
	}

	// All siblings of this number must have the same form.
	number := r.t.Node(i).Number
	keyType, valueType := r.t.Node(one).Type, r.t.Node(two).Type
	if keyType != wire.Len && keyType != wire.Varint || keyType == wire.Len && !utf8.Valid(r.t.Payload(one)) {
		return false
	}
	// These are the keys of the entries examined so far.
	var keys [mostEntries]int32
	entries, seen := 0, 0
	for c := range r.t.Children(r.t.Node(i).Parent) {
		if seen++; seen > mostShapeFields || entries == len(keys) {
			break
		}
		if r.t.Node(c).Number != number {
			continue
		}
		first := r.t.Node(c).First
		if first == wire.None {
			return false
		}
		second := r.t.Node(first).Next
		if second == wire.None || r.t.Node(second).Next != wire.None {
			return false
		}

		// A key and a value of the same types as in this entry.
		k, v := r.t.Node(first), r.t.Node(second)
		if k.Number != 1 || v.Number != 2 || k.Type != keyType || v.Type != valueType {
			return false
		}
		for _, other := range keys[:entries] {
			if bytes.Equal(r.t.Payload(other), r.t.Payload(first)) {
				return false
			}
		}
		keys[entries] = first
		entries++
	}
	return entries >= leastEntries
}
