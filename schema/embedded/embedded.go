// Package embedded finds protobuf descriptors that compiled code and generated sources
// carry: serialized FileDescriptorProtos among any other bytes. Bytes go in, and each
// descriptor comes out with its place and the form in which it was written.
//
// They are found by their structure. A file's descriptor begins with its name; from there
// on fields must follow each other in the order, with the types and with the kinds of names
// that a descriptor has. What does not continue ends it. No format of executables is
// parsed, so it is all the same which one it is, and whether descriptors are in a section,
// in a set or in a string's bytes.
//
// Scan also looks in base64, in gzip and in text of UTF-16. ScanClass reads the constants
// of a Java class file, and ScanSource the literals of source text in any language, which
// it joins and unescapes.
//
// Package extract chooses which of these a file needs; JavaScript is package bundle's.
package embedded

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/interrupt"
)

// maxFound bounds how many descriptors are taken from one file.
const maxFound = 1 << 17

// A Form says how a descriptor was stored.
type Form string

// The forms in which descriptors are stored.
const (
	// the bytes themselves: Go, C++, Rust, Python's .pyc, descriptor sets
	formRaw Form = "descriptor"

	// Go before 2020
	formGzipped Form = "gzipped descriptor"

	// JavaScript, C# sources
	formBase64 Form = "base64 descriptor"

	// base64 in the strings of .NET's assemblies
	formUTF16 Form = "UTF-16 descriptor"

	// constants of a class file
	formClass Form = "Java class"

	// string literals of generated sources
	formLiteral Form = "source literal"
)

// A Found is a descriptor and where it was.
type Found struct {
	File   *descriptorpb.FileDescriptorProto
	Form   Form
	Offset int // where it, or what holds it, begins
	Size   int // bytes of the descriptor itself
}

// Scan returns the descriptors in data: as they are, gzipped, and in base64 of
// bytes or of UTF-16 characters.
//
// Shape: in the order of their offsets. A descriptor that is there twice is
// returned twice.
// Limits: 131,072 descriptors, each of at most 64 MiB.
// Errors: the context's. Bytes without descriptors are no error.
// Source: schema/README.md#descriptors-in-executables
func Scan(ctx context.Context, data []byte) ([]Found, error) {
	var list []Found
	for _, find := range []func(context.Context, []byte) []Found{scanRaw, scanGzip, scanBase64, scanUTF16} {
		list = append(list, find(ctx, data)...)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(list, func(a, b Found) int { return cmp.Compare(a.Offset, b.Offset) })
	return list, nil
}

// suffix is what the name of a descriptor's file ends in.
const suffix = ".proto"

// scanRaw finds descriptors that stand in data as they are.
func scanRaw(ctx context.Context, data []byte) []Found {
	var list []Found
	taken := 0 // before it all is part of what was found
	for at := 0; len(list) < maxFound; {
		i := interrupt.Index(ctx, data[at:], []byte(suffix))
		if i < 0 || ctx.Err() != nil {
			break
		}
		at += i + len(suffix)
		if start, ok := nameStart(data, taken, at); ok {
			if f, size := parse(data[start:]); f != nil {
				list = append(list, Found{File: f, Form: formRaw, Offset: start, Size: size})
				taken = start + size
				at = max(at, taken)
			}
		}
	}
	return list
}

// maxName bounds the length of a file's name.
const maxName = 1024

// nameStart returns where the field begins, not before floor, that holds the
// name ending at end: the tag, the length, and as many bytes of text.
func nameStart(data []byte, floor, end int) (int, bool) {
	for n := len(suffix) + 1; n <= maxName; n++ {
		begin := end - n
		head := 2
		if n >= 0x80 {
			head = 3
		}
		if begin-head < floor {
			return 0, false
		}
		tag := begin - head
		if data[tag] == tagName &&
			(head == 2 && int(data[tag+1]) == n ||
				head == 3 && data[tag+1] == byte(n)|0x80 && int(data[tag+2]) == n>>7) && isPath(data[begin:end]) {
			return tag, true
		}
	}
	return 0, false
}
