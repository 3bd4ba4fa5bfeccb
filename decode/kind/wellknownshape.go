package kind

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"

	"unwire/decode/value"
	"unwire/decode/wire"
)

// A Remark is what a field's value looks like, besides its kind.
//
// Shape: Form is of a string, or the file format of bytes, Shape of a message: the full name of a well-known type,
// or "map entry", and P how likely that is. Note says what that, or a number that is a
// time, means in words. All are guesses: they never change how a value is written.
type Remark struct {
	Form, Shape, Note string
	P                 float64 // of the shape; 0 where there is none
}

// Doubtful reports whether the shape is one that much else has, too.
func (m Remark) Doubtful() bool { return m.Shape != "" && m.P < surely }

// surely is the probability from which on a shape is named without saying it.
const surely = 0.6

// Remark looks at node i, read as kind and type.
//
// Limits: a message's own fields and theirs are looked at, no deeper.
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
	mostShapeFields = 64 // of a message that is looked at
	mostEntries     = 16 // of a map
	leastEntries    = 3
)

// shape finds the well-known type that a message looks like.
func (r *Reader) shape(i int32) Remark {
	// The last of each number.
	var one, two, three int32 = wire.None, wire.None, wire.None

	count := 0
	for c := range r.t.Children(i) {
		n := r.t.Node(c)
		switch {
		case n.Type == wire.Garbage || n.Err != nil:
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
	if m, ok := r.secondsAndNanos(one, two, three, count); ok {
		return m
	}
	if name, ok := r.anyName(i); ok {
		return Remark{Shape: "google.protobuf.Any", Note: "of " + name, P: 0.98}
	}
	if r.isStatus(i, one, three) {
		return Remark{Shape: "google.rpc.Status", Note: r.statusWord(one), P: 0.97}
	}
	if r.isStruct(i, count) {
		return Remark{Shape: "google.protobuf.Struct", P: 0.95}
	}
	if r.isEntry(i, one, two, count) {
		return Remark{Shape: "map entry", P: 0.75}
	}
	if p := r.fieldMask(i); p > 0 {
		return Remark{Shape: "google.protobuf.FieldMask", P: p}
	}
	return r.pooledShape(i)
}

// secondsAndNanos is for Timestamp and Duration. Seconds alone are told from other
// numbers by their size only, so a Duration needs nanoseconds that are many.
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
		p := 0.75 // any number may be so large
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

// AnyType is the full name of the type that node i holds, if that looks like a
// google.protobuf.Any.
func (r *Reader) AnyType(i int32) (string, bool) { return r.anyName(i) }

// anyName is the type that an Any of node i holds.
func (r *Reader) anyName(i int32) (string, bool) {
	name, ok := "", false
	for c := range r.t.Children(i) {
		n := r.t.Node(c)
		switch {
		case n.Type != wire.Len, n.Number == 1 && ok, n.Number > 2:
			return "", false
		case n.Number == 1:
			if name, ok = typeURL(r.t.Payload(c)); !ok {
				return "", false
			}
		}
	}
	return name, ok
}

// typeURL is the full name in the URL of an Any: type.googleapis.com/package.Type.
func typeURL(b []byte) (string, bool) {
	if len(b) > 300 || !utf8.Valid(b) {
		return "", false
	}
	host, name, ok := strings.Cut(string(b), "/")
	if !ok || !strings.Contains(host, ".") || strings.ContainsAny(host, " \n") || !strings.Contains(name, ".") {
		return "", false // "/package.Type" is as likely a path
	}
	for part := range strings.SplitSeq(name, ".") {
		if part == "" || isDigit(part[0]) {
			return "", false
		}
		for i := range len(part) {
			if !isAlnum(part[i]) && part[i] != '_' {
				return "", false
			}
		}
	}
	// A file has an extension, a type a capital letter somewhere.
	return name, strings.ToLower(name) != name
}

// isStatus is for a code of RPC with details.
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

// rpcCodes are the words for the codes of gRPC.
var rpcCodes = [...]string{
	"ok", "canceled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists", "permission_denied", "resource_exhausted",
	"failed_precondition", "aborted", "out_of_range", "unimplemented", "internal", "unavailable", "data_loss", "unauthenticated",
}

func (r *Reader) statusWord(one int32) string { return rpcCodes[r.t.Uint(one)] }

// isStruct is for entries of names and values, each of one of a Value's kinds.
func (r *Reader) isStruct(i int32, count int) bool {
	if count == 0 {
		return false
	}
	telling := false
	for c := range r.t.Children(i) {
		n := r.t.Node(c)
		if n.Number != 1 || n.Type != wire.Len || !r.t.IsMessage(c) {
			return false
		}
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
		for v := range r.t.Children(value) {
			telling = telling || r.t.Node(v).Number != 1
		}
	}
	return telling
}

// isValue is for google.protobuf.Value.
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

// isEntry is for one of several messages of one field that are a key and a value
// each, with no key twice.
func (r *Reader) isEntry(i, one, two int32, count int) bool {
	if i == 0 || count != 2 || one == wire.None || two == wire.None {
		return false
	}
	number := r.t.Node(i).Number
	keyType, valueType := r.t.Node(one).Type, r.t.Node(two).Type
	if keyType != wire.Len && keyType != wire.Varint || keyType == wire.Len && !utf8.Valid(r.t.Payload(one)) {
		return false
	}
	var keys [mostEntries]int32 // of the entries that were looked at
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
