// Package protoform converts messages from and to the text formats of other protobuf tools: protojson and
// prototext. Field names come from definitions. Fields that the definitions lack cannot be represented; Print
// lists them.
//
// text, err := protoform.Print(protoform.Text, data, false, md, find)
// data, err = protoform.Parse(protoform.Text, text.Data, md, find)
//
// The commands show and encode use it.
package protoform

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/decode/suggest"
)

// A Format is a text format for protobuf messages: protojson or prototext.
type Format string

// The text formats of protobuf: its JSON mapping, and the text format of protoc and others.
const (
	// JSON is protobuf's JSON mapping.
	JSON Format = "protojson"
	// Text is protobuf's text format.
	Text Format = "prototext"
)

// Formats returns the names of all text formats.
func Formats() []string { return []string{string(JSON), string(Text)} }

// A finder is a function that returns the definition of a message type by its full name, or nil. It is needed
// for messages inside google.protobuf.Any.
type finder = func(name string) protoreflect.MessageDescriptor

// Printed is a message printed in a text format.
type Printed struct {
	// Data is the message in the text format.
	Data []byte

	// Lost has the paths of fields that are missing in Data because the definitions lack them.
	Lost []string
}

// typeComment is the beginning of the comment that names the type of a message in prototext. Other tools write
// it, too.
const typeComment = "# proto-message: "

// Print converts a message of the type md to a text format. data is encoded in protobuf, or in JSON if isJSON
// is set.
//
// Shape: JSON is indented. prototext begins with comments: the name of the type, and the paths of the fields
// that are missing.
func Print(format Format, data []byte, isJSON bool, md protoreflect.MessageDescriptor, find finder) (*Printed, error) {
	m := dynamicpb.NewMessage(md)

	// The types inside google.protobuf.Any are found by name.
	types := resolver{find}
	if isJSON {
		if err := (protojson.UnmarshalOptions{Resolver: types}).Unmarshal(data, m); err != nil {
			return nil, fmt.Errorf("the data is not the message %s in JSON: %w", md.FullName(), err)
		}
	} else if err := (proto.UnmarshalOptions{AllowPartial: true, Resolver: types}).Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("the data is not the message %s: %w", md.FullName(), err)
	}

	out := &Printed{Lost: lostFields(m)}
	if format == JSON {
		text, err := protojson.MarshalOptions{AllowPartial: true, Resolver: types}.Marshal(m)
		if err != nil {
			return nil, err
		}
		// protojson adds spaces at random, so that nobody relies on them.
		var b bytes.Buffer
		if err := json.Indent(&b, text, "", "  "); err != nil {
			return nil, err
		}
		b.WriteByte('\n')
		out.Data = b.Bytes()
		return out, nil
	}

	// The text format names the type in a comment, since the format itself has no place for it.
	text, err := prototext.MarshalOptions{Multiline: true, AllowPartial: true, Resolver: types}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(typeComment + string(md.FullName()) + "\n")
	if len(out.Lost) > 0 {
		fmt.Fprintf(&b, "# not in the definitions, and left out: %s\n", strings.Join(out.Lost, " "))
	}
	b.Write(text)
	out.Data = b.Bytes()
	return out, nil
}

// Parse converts a text in the given format, such as one that Print wrote, to the protobuf encoding.
//
// Errors: a name that the definitions lack.
func Parse(format Format, text []byte, md protoreflect.MessageDescriptor, find finder) ([]byte, error) {
	m := dynamicpb.NewMessage(md)
	types := resolver{find}
	var err error
	if format == JSON {
		err = protojson.UnmarshalOptions{AllowPartial: true, Resolver: types}.Unmarshal(text, m)
	} else {
		err = prototext.UnmarshalOptions{AllowPartial: true, Resolver: types}.Unmarshal(text, m)
	}
	if err != nil {
		return nil, fmt.Errorf("the input is not the %s form of %s: %w", format, md.FullName(), suggest.EnumInJSON(err, md))
	}
	return proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(m)
}

// TypeOf returns the full name of the message type from the comments at the beginning of a prototext file, or
// "".
func TypeOf(text []byte) string {
	for line := range bytes.Lines(text) {
		if name, ok := bytes.CutPrefix(line, []byte(typeComment)); ok {
			return string(bytes.TrimSpace(name))
		}
		if !bytes.HasPrefix(line, []byte("#")) {
			return ""
		}
	}
	return ""
}

// lostFields returns the paths of unknown fields in m and in the messages nested in it, without repetition.
func lostFields(m protoreflect.Message) []string {
	found := map[string]bool{}
	addLost(m, "", found)
	return slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "."), strings.Count(b, ".")), strings.Compare(a, b))
	})
}

// addLost adds the paths of unknown fields in m, which is at path, to found.
func addLost(m protoreflect.Message, path string, found map[string]bool) {
	// Each unknown field is reported by its number.
	for rest := m.GetUnknown(); len(rest) > 0; {
		number, _, n := protowire.ConsumeField(rest)
		// Parsed messages have complete fields only.
		if n < 0 {
			break
		}
		found[path+strconv.Itoa(int(number))] = true
		rest = rest[n:]
	}

	// Messages inside fields, list elements and map values can have unknown fields as well.
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		below := path + strconv.Itoa(int(fd.Number())) + "."
		switch {
		case fd.IsMap() && fd.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				addLost(v.Message(), below+"2.", found)
				return true
			})
		case fd.IsMap() || fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				addLost(v.List().Get(i).Message(), below, found)
			}
		default:
			addLost(v.Message(), below, found)
		}
		return true
	})
}

// A resolver is a protobuf type resolver for messages inside google.protobuf.Any.
type resolver struct {
	// find returns the definition of a message type by its full name, or nil.
	find finder
}

// FindMessageByName returns the message type with the given full name.
func (r resolver) FindMessageByName(name protoreflect.FullName) (protoreflect.MessageType, error) {
	if r.find != nil {
		if md := r.find(string(name)); md != nil {
			return dynamicpb.NewMessageType(md), nil
		}
	}
	return nil, protoregistry.NotFound
}

// FindMessageByURL returns the message type for the type URL in an Any.
func (r resolver) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	return r.FindMessageByName(protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:]))
}

// FindExtensionByName finds nothing: extensions are not supported.
func (resolver) FindExtensionByName(protoreflect.FullName) (protoreflect.ExtensionType, error) {
	return nil, protoregistry.NotFound
}

// FindExtensionByNumber finds nothing: extensions are not supported.
func (resolver) FindExtensionByNumber(protoreflect.FullName, protoreflect.FieldNumber) (protoreflect.ExtensionType, error) {
	return nil, protoregistry.NotFound
}
