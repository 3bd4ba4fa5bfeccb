package javalite

import (
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle/protoname"
	"unwire/schema/classfile"
)

// An info is the description of a message that generated Java code passes to protobuf's lite runtime
// (RawMessageInfo), decoded.
type info struct {
	// syntax is "proto2" or "proto3"; "" for an edition.
	syntax string
	// oneofs are the names of the Java fields that hold the oneofs.
	oneofs []string
	// fields are the fields of the message.
	fields []field
}

// A field is the part about one protobuf field in the description of a message (RawMessageInfo).
type field struct {
	// number is the field number.
	number int32
	// kind is the number of the type in the lite runtime's list of types, without the offset that marks members
	// of oneofs.
	kind int
	// required is set for required fields of proto2. hasBit is set if the class records whether the field is
	// set.
	required, hasBit bool
	// oneof is the index of the oneof; -1 if the field is in none.
	oneof int
	// java is the name of the Java field; "" for the fields of a oneof, which share one.
	java string
	// class is the Java class of the message, of a list's elements, or of the holder of a map's default entry;
	// "" if the description has none.
	class string
}

// Numbers in descriptions of messages; see RawMessageInfo.java in the protobuf runtime.
const (
	// flagProto2 and flagEdition are flags of a message: its syntax is proto2, or an edition.
	flagProto2  = 1
	flagEdition = 4

	// fieldRequired, fieldClosedEnum and fieldHasBit are flags of a field: it is required, its enum is closed
	// (proto2), its presence is recorded in a bit.
	fieldRequired   = 0x100
	fieldClosedEnum = 0x800
	fieldHasBit     = 0x1000

	// kindGroup is the last kind of a single field. Those of lists, packed lists, groups, and maps follow.
	kindGroup = 17
	// kindPacked is the first kind of packed lists, kindGroups that of lists of groups, and kindMap that of
	// maps; kindOfOneof is the offset of the kinds of oneof members.
	kindPacked  = 35
	kindGroups  = 49
	kindMap     = 50
	kindOfOneof = 51
	// kindMessage, kindEnum, messageList, enumList and packedEnumList are the kinds of message and enum fields.
	kindMessage    = 9
	kindEnum       = 12
	messageList    = 27
	enumList       = 30
	packedEnumList = 44
)

// Short names for the types of descriptors.
const (
	typeMessage = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	typeGroup   = descriptorpb.FieldDescriptorProto_TYPE_GROUP
	typeEnum    = descriptorpb.FieldDescriptorProto_TYPE_ENUM
)

// singleTypes returns the types in the order in which the lite runtime numbers them.
func singleTypes() []descriptorpb.FieldDescriptorProto_Type {
	return []descriptorpb.FieldDescriptorProto_Type{
		descriptorpb.FieldDescriptorProto_TYPE_DOUBLE, descriptorpb.FieldDescriptorProto_TYPE_FLOAT, descriptorpb.FieldDescriptorProto_TYPE_INT64,
		descriptorpb.FieldDescriptorProto_TYPE_UINT64, descriptorpb.FieldDescriptorProto_TYPE_INT32, descriptorpb.FieldDescriptorProto_TYPE_FIXED64,
		descriptorpb.FieldDescriptorProto_TYPE_FIXED32, descriptorpb.FieldDescriptorProto_TYPE_BOOL, descriptorpb.FieldDescriptorProto_TYPE_STRING,
		typeMessage, descriptorpb.FieldDescriptorProto_TYPE_BYTES, descriptorpb.FieldDescriptorProto_TYPE_UINT32, typeEnum,
		descriptorpb.FieldDescriptorProto_TYPE_SFIXED32, descriptorpb.FieldDescriptorProto_TYPE_SFIXED64, descriptorpb.FieldDescriptorProto_TYPE_SINT32,
		descriptorpb.FieldDescriptorProto_TYPE_SINT64, typeGroup,
	}
}

// A listKind says whether a field is repeated, and how it is encoded.
type listKind int

const (
	// single is a field that is not repeated, plainList a repeated field that is not packed, and packedList a
	// packed one.
	single listKind = iota
	plainList
	packedList
)

// scalar returns the type of the field's elements (0 for a map), and whether it is repeated.
func (f *field) scalar() (descriptorpb.FieldDescriptorProto_Type, listKind) {
	types := singleTypes()
	switch {
	case f.kind <= kindGroup:
		return types[f.kind], single
	case f.kind < kindPacked:
		return types[f.kind-kindGroup-1], plainList
	case f.kind == kindGroups:
		return typeGroup, plainList
	case f.kind == kindMap:
		return 0, single
	}

	// Texts, messages, bytes and groups cannot be packed: the list lacks them.
	n := f.kind - kindPacked
	for _, t := range types {
		switch t {
		case descriptorpb.FieldDescriptorProto_TYPE_STRING, typeMessage, descriptorpb.FieldDescriptorProto_TYPE_BYTES, typeGroup:
			continue
		}
		if n == 0 {
			return t, packedList
		}
		n--
	}
	return 0, single
}

// messageInfo returns the description of the message that a class represents, or nil. It is found by its form,
// so that renaming by an obfuscator does not matter: a method creates an array of names and classes, and loads
// a string after it.
//
// Limits: maxTried bytes of strings that look like a description.
func messageInfo(f *classfile.File) *info {
	tried := 0
	for i := range f.Methods {
		m := &f.Methods[i]
		var objects []object
		var last object
		for in := range m.Instructions() {
			switch in.Op {
			case classfile.OpLdc, classfile.OpLdcW:
				last = object{class: f.Class(in.Index)}
				if text, ok := f.Text(in.Index); ok {
					last.text, last.isText = text, true
					if !looksLikeInfo(text) || tried > maxTried {
						continue
					}
					tried += len(text)
					if parsed := parseInfo(text, objects); parsed != nil && (len(objects) > 0 || isLite(f)) {
						return parsed
					}
				}
			case classfile.OpGetstatic, classfile.OpInvokestatic:
				class, _, _ := f.Ref(in.Index)
				last = object{class: class}
			case opAnewarray:
				objects = nil
			case classfile.OpAastore:
				objects = append(objects, last)
			}
		}
	}
	return nil
}

// maxTried is the maximum total length, in bytes, of the strings of a class that are parsed as a description.
const maxTried = 4 << 20

// looksLikeInfo reports whether a text may be a description (RawMessageInfo), judged by its first byte.
func looksLikeInfo(text []byte) bool {
	return len(text) > 0 && (text[0] < 8 || text[0] == 0xc0)
}

// opAnewarray is the JVM instruction that creates an array of objects.
const opAnewarray = 0xbd

// isLite reports whether a class extends the base class of messages in the lite runtime.
func isLite(f *classfile.File) bool { return strings.HasSuffix(f.Super, "/GeneratedMessageLite") }

// An object is an element of the array that belongs to a description: the name of a Java field, or a class.
type object struct {
	// text is the name of a Java field in modified UTF-8, if isText is set.
	text []byte
	// isText is set if the element is a string, i.e. the name of a Java field.
	isText bool
	// class is the name of the class, if isText is not set.
	class string
}

// parseInfo parses the description of a message (RawMessageInfo). It returns nil if text is something else, or
// does not fit the objects. It accepts both formats: versions before 3.10 state differently which fields have
// presence bits.
func parseInfo(text []byte, objects []object) *info {
	units := utf16Units(text)
	for _, old := range []bool{false, true} {
		p := &parser{units: units, objects: objects, bitsOfProto2: old}
		if in := p.message(); in != nil {
			return in
		}
	}
	return nil
}

// A parser is the state of parsing the description of a message (RawMessageInfo).
type parser struct {
	// units are the remaining UTF-16 code units of the description.
	units []uint16
	// objects are the remaining elements of the array of names and classes that belongs to the description.
	objects []object
	// bitsOfProto2 is set if all singular fields of proto2 have presence bits, as before version 3.10.
	bitsOfProto2 bool
	// failed is set if the description is malformed or does not fit the array.
	failed bool
}

// number reads a number from the description: 13 bits of each unit from 0xd800 on, and all bits of the last
// one.
func (p *parser) number() int {
	v, shift := 0, 0
	for len(p.units) > 0 && shift <= 26 {
		u := int(p.units[0])
		p.units = p.units[1:]
		if u < 0xd800 {
			return v | u<<shift
		}
		v |= (u & 0x1fff) << shift
		shift += 13
	}
	p.failed = true
	return 0
}

// next returns the next element of the array that belongs to the description, and removes it.
func (p *parser) next() object {
	if len(p.objects) == 0 {
		p.failed = true
		return object{}
	}
	o := p.objects[0]
	p.objects = p.objects[1:]
	return o
}

// name returns the next element of the array, which must be the name of a Java field, and removes it.
func (p *parser) name() string {
	o := p.next()
	p.failed = p.failed || !o.isText
	return string(o.text)
}

// message parses the whole description of a message (RawMessageInfo). It returns nil if a part does not fit, or
// if something remains.
func (p *parser) message() *info {
	flags, count := p.number(), p.number()
	in := &info{syntax: "proto3"}
	switch {
	case flags&^7 != 0 || count > len(p.units):
		return nil
	case flags&flagProto2 != 0:
		in.syntax = "proto2"
	case flags&flagEdition != 0:
		in.syntax = ""
	}
	if count > 0 && !p.head(in, count) {
		return nil
	}
	number := 0
	for range count {
		f := p.field(in)
		if p.failed || int(f.number) <= number || !protoname.ValidNumber(int64(f.number)) {
			return nil
		}
		number = int(f.number)
		in.fields = append(in.fields, f)
	}
	if p.failed || len(p.units) > 0 || len(p.objects) > 0 {
		return nil
	}
	return in
}

// head parses what precedes the count fields of a message that has some. It reports whether that fits.
func (p *parser) head(in *info, count int) bool {
	oneofs, bits, first, last := p.number(), p.number(), p.number(), p.number()
	entries := p.number()
	for range 3 {
		p.number() // maps, lists, and fields that need a check
	}
	if p.failed || oneofs > count || bits > count || entries != count || first > last {
		return false
	}
	for range oneofs {
		in.oneofs = append(in.oneofs, p.name())
		p.name() // the field with the number of the one that is set
	}
	for range bits {
		p.name()
	}
	return !p.failed
}

// field parses the part about one field in the description of a message.
func (p *parser) field(in *info) field {
	f := field{number: int32(p.number()), oneof: -1}
	flags := p.number()
	f.kind = flags & 0xff
	f.required, f.hasBit = flags&fieldRequired != 0, flags&fieldHasBit != 0
	closed := flags&fieldClosedEnum != 0 || in.syntax == "proto2"

	if f.kind >= kindOfOneof {
		f.kind -= kindOfOneof
		f.oneof = p.number()
		p.failed = p.failed || f.oneof >= len(in.oneofs) || f.kind > kindGroup
		switch {
		case f.kind == kindMessage || f.kind == kindGroup:
			f.class = p.next().class
		case f.kind == kindEnum && closed:
			p.next() // a function that checks numbers
		}
		return f
	}

	f.java = p.name()
	switch f.kind {
	case messageList, kindGroups:
		f.class = p.next().class
	case kindEnum, enumList, packedEnumList:
		if closed {
			p.next()
		}
	case kindMap:
		f.class = p.next().class
		if flags&fieldClosedEnum != 0 {
			p.next()
		}
	}
	if f.kind <= kindGroup && (f.hasBit || p.bitsOfProto2 && in.syntax == "proto2") {
		p.number() // the index of the bit
	}
	return f
}

// utf16Units decodes modified UTF-8 (of Java class files) to UTF-16: each code unit has one to three bytes,
// including those of surrogate pairs. It returns nil if the text is malformed.
func utf16Units(text []byte) []uint16 {
	units := make([]uint16, 0, len(text))
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c < 0x80:
			units = append(units, uint16(c))
			i++
		case c&0xe0 == 0xc0 && i+1 < len(text):
			units = append(units, uint16(c&0x1f)<<6|uint16(text[i+1]&0x3f))
			i += 2
		case c&0xf0 == 0xe0 && i+2 < len(text):
			units = append(units, uint16(c&0x0f)<<12|uint16(text[i+1]&0x3f)<<6|uint16(text[i+2]&0x3f))
			i += 3
		default:
			return nil
		}
	}
	return units
}
