// Package protoform writes messages in the forms that other protobuf tools read: protojson
// and prototext. Names come from definitions, so both lose the fields that these lack:
// Print names them.
//
//	text, err := protoform.Print(protoform.Text, data, false, md, find)
//	data, err = protoform.Parse(protoform.Text, text.Data, md, find)
//
// Show prints frames so, and encode reads them back.
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
)

// A Format is how messages are written.
type Format string

const (
	JSON Format = "protojson"
	Text Format = "prototext"
)

// Formats are all formats.
func Formats() []string { return []string{string(JSON), string(Text)} }

// A finder returns the definition of a message by its full name, or nil. The messages in
// google.protobuf.Any are found by it.
type finder = func(name string) protoreflect.MessageDescriptor

// Printed is a message in a format.
type Printed struct {
	Data []byte

	// Lost are the paths of fields that the definitions lack, which Data does not have.
	Lost []string
}

// typeComment is the comment by which a text names its message; other tools write it, too.
const typeComment = "# proto-message: "

// Print writes a message of type md, which is protobuf, or JSON of any spelling that
// protojson reads.
//
// Shape: JSON is indented; text begins with the name of its type, and with the paths of
// lost fields in a comment.
func Print(format Format, data []byte, isJSON bool, md protoreflect.MessageDescriptor, find finder) (*Printed, error) {
	m := dynamicpb.NewMessage(md)
	types := resolver{find}
	if isJSON {
		if err := (protojson.UnmarshalOptions{Resolver: types}).Unmarshal(data, m); err != nil {
			return nil, fmt.Errorf("not JSON of %s: %w", md.FullName(), err)
		}
	} else if err := (proto.UnmarshalOptions{AllowPartial: true, Resolver: types}).Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("not a message of %s: %w", md.FullName(), err)
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

// Parse reads what Print wrote, as protobuf.
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
		return nil, fmt.Errorf("not %s of %s: %w", format, md.FullName(), err)
	}
	return proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(m)
}

// TypeOf is the name of the type that a text gives in its first comments, or "".
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

// lostFields are the paths of the fields that m and the messages in it have and their
// types lack, without repetitions.
func lostFields(m protoreflect.Message) []string {
	found := map[string]bool{}
	addLost(m, "", found)
	return slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "."), strings.Count(b, ".")), strings.Compare(a, b))
	})
}

// addLost adds the paths of what is lost in m, which is at a path.
func addLost(m protoreflect.Message, path string, found map[string]bool) {
	for rest := m.GetUnknown(); len(rest) > 0; {
		number, _, n := protowire.ConsumeField(rest)
		if n < 0 { // parsed messages have whole fields only
			break
		}
		found[path+strconv.Itoa(int(number))] = true
		rest = rest[n:]
	}
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

// A resolver finds the types of messages in Any.
type resolver struct{ find finder }

func (r resolver) FindMessageByName(name protoreflect.FullName) (protoreflect.MessageType, error) {
	if r.find != nil {
		if md := r.find(string(name)); md != nil {
			return dynamicpb.NewMessageType(md), nil
		}
	}
	return nil, protoregistry.NotFound
}

func (r resolver) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	return r.FindMessageByName(protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:]))
}

func (resolver) FindExtensionByName(protoreflect.FullName) (protoreflect.ExtensionType, error) {
	return nil, protoregistry.NotFound
}

func (resolver) FindExtensionByNumber(protoreflect.FullName, protoreflect.FieldNumber) (protoreflect.ExtensionType, error) {
	return nil, protoregistry.NotFound
}
