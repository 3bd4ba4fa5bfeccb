package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"unicode/utf8"
)

// classMagic begins a Java class file.
const classMagic = "\xca\xfe\xba\xbe"

// IsClass says whether data begins as a Java class file does.
func IsClass(data []byte) bool {
	// The same four bytes begin a Mach-O for several machines, of which there are few.
	return len(data) > 10 && string(data[:4]) == classMagic && binary.BigEndian.Uint16(data[6:]) >= 45
}

// ScanClass returns the descriptors in a Java class file: generated code has
// each as one string or as an array of them, a character a byte.
//
// Errors: the context's. What is broken is read as far as it goes.
// Source: The Java Virtual Machine Specification, chapter 4
func ScanClass(ctx context.Context, data []byte) ([]Found, error) {
	if !IsClass(data) || !bytes.Contains(data, []byte(suffix)) {
		return nil, nil
	}
	c := &class{data: data, at: 8}
	c.constants()
	var list []Found
	for _, text := range c.codeStrings() {
		for _, f := range scanRaw(ctx, text) {
			f.Form, f.Offset = formClass, 0
			list = append(list, f)
		}
	}
	return list, ctx.Err()
}

// A class is a class file as it is read. Reading beyond its end sets at beyond
// it, and gives zeros.
type class struct {
	data []byte
	at   int
	pool []constant
}

// A constant is an entry of the pool: the text of a CONSTANT_Utf8, or where the
// text of a CONSTANT_String is.
type constant struct {
	utf8   []byte
	string int
}

const (
	constantUTF8   = 1
	constantLong   = 5
	constantDouble = 6
	constantString = 8
)

// constantSize is how many bytes stand after the tag of a constant other than UTF-8.
func constantSize(tag int) int {
	switch tag {
	case 7, constantString, 16, 19, 20: // Class, MethodType, Module, Package
		return 2
	case 15: // MethodHandle
		return 3
	// Integer, Float, references, NameAndType, Dynamic
	case 3, 4, 9, 10, 11, 12, 17, 18:
		return 4
	case constantLong, constantDouble:
		return 8
	}
	return -1
}

func (c *class) bytes(n int) []byte {
	if n < 0 || c.at > len(c.data)-n {
		c.at = len(c.data) + 1
		return nil
	}
	b := c.data[c.at : c.at+n]
	c.at += n
	return b
}

func (c *class) uint(n int) int {
	v := 0
	for _, b := range c.bytes(n) {
		v = v<<8 | int(b)
	}
	return v
}

func (c *class) ok() bool { return c.at <= len(c.data) }

func (c *class) constants() {
	n := c.uint(2)
	c.pool = make([]constant, n)
	for i := 1; i < n && c.ok(); i++ {
		switch tag := c.uint(1); tag {
		case constantUTF8:
			c.pool[i].utf8 = c.bytes(c.uint(2))
		case constantString:
			c.pool[i].string = c.uint(2)
		default:
			c.bytes(constantSize(tag))
			if tag == constantLong || tag == constantDouble {
				i++ // it counts for two
			}
		}
	}
}

// codeStrings are the strings that each method loads, joined in the order of its
// code: which is the order of the source, whatever the pool's is.
func (c *class) codeStrings() [][]byte {
	c.bytes(6)
	c.bytes(2 * c.uint(2))
	var list [][]byte
	for range 2 { // fields, then methods
		for n := c.uint(2); n > 0 && c.ok(); n-- {
			c.bytes(6)
			for attrs := c.uint(2); attrs > 0 && c.ok(); attrs-- {
				name := c.constant(c.uint(2))
				body := c.bytes(c.uint(4))
				if string(name.utf8) == "Code" && len(body) > 8 {
					code := body[8:]
					if text := c.loaded(code[:min(len(code), int(binary.BigEndian.Uint32(body[4:])))]); len(text) > 0 {
						list = append(list, text)
					}
				}
			}
		}
	}
	return list
}

func (c *class) constant(i int) constant {
	if i >= len(c.pool) {
		return constant{}
	}
	return c.pool[i]
}

const (
	opLdc          = 0x12
	opLdcW         = 0x13
	opTableswitch  = 0xaa
	opLookupswitch = 0xab
	opWide         = 0xc4
	opIinc         = 0x84
)

// loaded joins the strings that code loads.
func (c *class) loaded(code []byte) []byte {
	var text []byte
	for at := 0; at < len(code); {
		index := 0
		switch code[at] {
		case opLdc:
			index = at16(code, at+1) >> 8
		case opLdcW:
			index = at16(code, at+1)
		}
		if index > 0 && len(text) < maxDescriptor {
			text = appendLatin(text, c.constant(c.constant(index).string).utf8)
		}
		n := opSize(code, at)
		if n <= 0 {
			break
		}
		at += n
	}
	return text
}

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

// opSize is the length of the instruction at at.
func opSize(code []byte, at int) int {
	switch op := code[at]; {
	case op == opTableswitch || op == opLookupswitch:
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
	case op == 0x10, op == opLdc, op >= 0x15 && op <= 0x19, op >= 0x36 && op <= 0x3a, op == 0xa9, op == 0xbc:
		return 2
	case op == 0x11, op == opLdcW, op == 0x14, op == opIinc, op >= 0x99 && op <= 0xa8, op >= 0xb2 && op <= 0xb8,
		op == 0xbb, op == 0xbd, op == 0xc0, op == 0xc1, op == 0xc6, op == 0xc7:
		return 3
	case op == 0xc5:
		return 4
	case op == 0xb9, op == 0xba, op == 0xc8, op == 0xc9:
		return 5
	}
	return 1
}

// appendLatin appends the characters of modified UTF-8, a byte each; of text
// with others nothing.
func appendLatin(out, text []byte) []byte {
	was := out
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		// up to U+00FF
		case c&0xfc == 0xc0 && i+1 < len(text) && text[i+1]&0xc0 == 0x80:
			out = append(out, c<<6|text[i+1]&0x3f)
			i += 2
		default:
			return was
		}
	}
	return out
}
