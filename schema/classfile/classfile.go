// Package classfile reads Java class files: their constants, fields and methods, and the instructions of methods. It
// executes nothing.
//
//	f := classfile.Parse(data) // nil if data is no class file
//	for _, m := range f.Methods {
//		for in := range m.Instructions() {
//			if text, ok := f.Text(in.Index); ok { … } // a string that the method loads
//		}
//	}
//
// Limits: a class file has at most 65,535 constants, fields and methods each. A damaged file is read as far as possible;
// a constant that is missing is empty. What is returned refers to the data, which must not change.
//
// Source: The Java Virtual Machine Specification, chapters 4 and 6.
package classfile

import (
	"encoding/binary"
	"iter"
)

// magic are the first bytes of a Java class file.
const magic = "\xca\xfe\xba\xbe"

// Is reports whether data begins like a Java class file.
func Is(data []byte) bool {
	// A universal Mach-O binary has the same magic number, followed by the small number of its architectures.
	return len(data) > 10 && string(data[:4]) == magic && binary.BigEndian.Uint16(data[6:]) >= 45
}

// A File is a parsed Java class file.
type File struct {
	// Name is the name of the class, and Super that of its superclass, such as "com/acme/Item$Part".
	Name, Super string
	// Fields are the fields of the class, in the order of the file.
	Fields []Member
	// Methods are the methods and constructors; "<clinit>" is the static initializer.
	Methods []Member

	// pool is the constant pool: all texts, numbers and names that the class refers to by index.
	pool []constant
}

// A Member is a field or a method of a class.
type Member struct {
	// Name is the name of the field or method in the Java source.
	Name string
	// Descriptor is the type in the notation of the JVM, such as "I" for an int, "Lcom/acme/Item;" for an
	// object, or "(I)J" for a method.
	Descriptor string
	// Constant is the index in the constant pool of a static field's constant value; 0 if it has none.
	Constant int
	// Code is the bytecode of a method; empty for a field.
	Code []byte
	// Annotations are the annotations of a method or field that the compiler keeps.
	Annotations []Annotation
}

// An Annotation is a Java annotation. Of its elements, only texts, classes and enum constants are kept.
type Annotation struct {
	// Type is the annotation's class in the notation of the JVM, such as "Ljava/lang/Deprecated;".
	Type string

	// Elements maps names to values: the text, the class in the notation of the JVM, or the name of the enum
	// constant.
	Elements map[string]string
}

// A constant is an entry of a class file's constant pool.
type constant struct {
	// tag is the kind of the entry, such as constantString.
	tag byte
	// utf8 is the text of an entry of the kind constantUTF8.
	utf8 []byte
	// a and b are the operands of other kinds: indices of other constants, or the halves of a number.
	a, b int
}

// Tags of constants, by which the JVM distinguishes the entries of the constant pool.
const (
	constantUTF8    = 1
	constantInteger = 3
	constantLong    = 5
	constantDouble  = 6
	constantClass   = 7
	constantString  = 8
	constantField   = 9
	constantMethod  = 10
	// constantOfIface is a method of an interface, and constantPair a name with a type.
	constantOfIface = 11
	constantPair    = 12
)

// Parse parses a class file. It returns nil if data does not begin like one. A malformed file is parsed as far
// as possible.
func Parse(data []byte) *File {
	if !Is(data) {
		return nil
	}
	r := &reader{data: data, at: 8}
	f := &File{pool: r.constants()}
	r.bytes(2) // the access flags
	f.Name, f.Super = f.Class(r.uint(2)), f.Class(r.uint(2))
	r.bytes(2 * r.uint(2)) // the interfaces
	f.Fields = r.members(f)
	f.Methods = r.members(f)
	return f
}

// at returns the entry of the constant pool with index i; an empty one if there is none.
func (f *File) at(i int) constant {
	if i < 0 || i >= len(f.pool) {
		return constant{}
	}
	return f.pool[i]
}

// Text returns the text of the string constant with index i, in modified UTF-8. ok is false for other
// constants.
func (f *File) Text(i int) (text []byte, ok bool) {
	c := f.at(i)
	if c.tag != constantString {
		return nil, false
	}
	return f.at(c.a).utf8, true
}

// Class returns the name of the class constant with index i, such as "com/acme/Item"; "" for other constants.
func (f *File) Class(i int) string {
	c := f.at(i)
	if c.tag != constantClass {
		return ""
	}
	return string(f.at(c.a).utf8)
}

// Int returns the value of the int constant with index i. ok is false for other constants.
func (f *File) Int(i int) (value int32, ok bool) {
	c := f.at(i)
	return int32(c.a<<16 | c.b), c.tag == constantInteger
}

// Ref returns the field or method that the constant with index i refers to; empty texts for other constants.
func (f *File) Ref(i int) (class, name, descriptor string) {
	c := f.at(i)
	if c.tag != constantField && c.tag != constantMethod && c.tag != constantOfIface {
		return "", "", ""
	}
	pair := f.at(c.b)
	if pair.tag != constantPair {
		return "", "", ""
	}
	return f.Class(c.a), string(f.at(pair.a).utf8), string(f.at(pair.b).utf8)
}

// An Instruction is one bytecode instruction of a method.
type Instruction struct {
	// Op is the opcode, such as OpLdc.
	Op byte
	// Index is the index in the constant pool of the instruction's operand; 0 if it has none.
	Index int
}

// Opcodes of the JVM that this package and its users distinguish.
const (
	// OpLdc loads a constant, such as a string, whose index has one byte.
	OpLdc = 0x12
	// OpLdcW is OpLdc with an index of two bytes.
	OpLdcW = 0x13
	// OpAastore stores an object in an array.
	OpAastore = 0x53
	// OpGetstatic reads a static field.
	OpGetstatic = 0xb2
	// OpInvokestatic calls a static method.
	OpInvokestatic = 0xb8

	// opTableswitch and opLookupswitch are jump tables of variable length.
	opTableswitch  = 0xaa
	opLookupswitch = 0xab
	// opWide makes the next instruction's operands two bytes long.
	opWide = 0xc4
	// opIinc increments a local variable.
	opIinc = 0x84
)

// Instructions yields the bytecode instructions of a method in order. It ends at a malformed one.
func (m *Member) Instructions() iter.Seq[Instruction] {
	return func(yield func(Instruction) bool) {
		for at := 0; at < len(m.Code); {
			in := Instruction{Op: m.Code[at]}
			switch op := m.Code[at]; {
			case op == OpLdc:
				in.Index = at16(m.Code, at+1) >> 8
			// ldc_w, ldc2_w, the access to fields, calls, new and anewarray
			case op == OpLdcW, op == 0x14, op >= OpGetstatic && op <= 0xbb, op == 0xbd:
				in.Index = at16(m.Code, at+1)
			}
			if !yield(in) {
				return
			}
			n := opSize(m.Code, at)
			if n <= 0 {
				return
			}
			at += n
		}
	}
}

// at16 returns the big-endian 16-bit number at offset at; bytes after the end count as zero.
func at16(b []byte, at int) int {
	v := 0
	for i := at; i < at+2; i++ {
		v <<= 8
		if i < len(b) {
			v |= int(b[i])
		}
	}
	return v
}

// opSize returns the length in bytes of the instruction at offset at, or 0 if it is malformed.
func opSize(code []byte, at int) int {
	switch op := code[at]; {
	case op == opTableswitch || op == opLookupswitch:
		// The operands are aligned to four bytes.
		args := (at + 4) &^ 3
		if args+12 > len(code) {
			return 0
		}
		n := int64(int32(binary.BigEndian.Uint32(code[args+4:])))
		size := int64(args-at) + 8 + 8*n
		if op == opTableswitch {
			high := int64(int32(binary.BigEndian.Uint32(code[args+8:])))
			size = int64(args-at) + 12 + 4*(high-n+1)
		}
		if size <= 0 || size > int64(len(code)) {
			return 0
		}
		return int(size)
	case op == opWide:
		if at+1 < len(code) && code[at+1] == opIinc {
			return 6
		}
		return 4
	case op == 0x10, op == OpLdc, op >= 0x15 && op <= 0x19, op >= 0x36 && op <= 0x3a, op == 0xa9, op == 0xbc:
		return 2
	case op == 0x11, op == OpLdcW, op == 0x14, op == opIinc, op >= 0x99 && op <= 0xa8, op >= 0xb2 && op <= 0xb8,
		op == 0xbb, op == 0xbd, op == 0xc0, op == 0xc1, op == 0xc6, op == 0xc7:
		return 3
	case op == 0xc5:
		return 4
	case op == 0xb9, op == 0xba, op == 0xc8, op == 0xc9:
		return 5
	}
	return 1
}
