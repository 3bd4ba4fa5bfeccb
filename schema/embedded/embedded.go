// Package embedded finds protobuf descriptors inside compiled code and generated sources: serialized
// FileDescriptorProtos among arbitrary other bytes.
//
// found, err := embedded.Scan(ctx, data)
//
//	for _, f := range found {
//	    fmt.Println(f.File.GetName(), f.Form, f.Offset)
//	}
//
// Descriptors are recognised by their structure: a descriptor begins with its file name, and its fields follow
// in a fixed order, with known types and plausible names. The first field that does not fit ends it. Therefore
// no executable format needs to be parsed.
//
// Scan also searches base64, gzip and UTF-16 text. ScanClass reads the constants of a Java class file.
// ScanSource reads the literals of source code in any language, unescapes and joins them. Package extract
// chooses the function for each file; package bundle reads JavaScript.
package embedded

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/interrupt"
)

// maxFound is the maximum number of descriptors that are returned for one file.
const maxFound = 1 << 17

// A Form is an encoding in which programs store file descriptors.
type Form string

// The encodings of descriptors.
const (
	// formRaw is the serialized descriptor itself: Go, C++, Rust, Python's .pyc, descriptor sets.
	formRaw Form = "descriptor"

	// formGzipped is compressed with gzip, as in Go code from before 2020.
	formGzipped Form = "gzipped descriptor"

	// formBase64 is encoded in base64, as in JavaScript and C# sources.
	formBase64 Form = "base64 descriptor"

	// formUTF16 is base64 in UTF-16, as in the strings of .NET assemblies.
	formUTF16 Form = "UTF-16 descriptor"

	// formClass is stored in string constants of a Java class file.
	formClass Form = "Java class"

	// formLiteral is stored in string or number literals of generated source code.
	formLiteral Form = "source literal"
)

// A Found is a file descriptor that was found inside other data.
type Found struct {
	// File is the found file descriptor.
	File *descriptorpb.FileDescriptorProto
	// Form is the encoding in which the descriptor was found, such as base64.
	Form Form
	// Offset is the offset of the descriptor, or of the text that encodes it, in bytes.
	Offset int
	// Size is the size of the decoded descriptor in bytes.
	Size int
}

// Scan returns the file descriptors in data: unencoded, compressed with gzip, and in base64 of bytes or of
// UTF-16 characters.
//
// Shape: sorted by offset. A descriptor that occurs twice is returned twice.
// Limits: 131,072 descriptors, each of at most 64 MiB.
// Errors: the context's. Finding nothing is not an error.
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

// suffix is the extension of .proto files. File descriptors begin with a name that ends so.
const suffix = ".proto"

// scanRaw finds file descriptors that are not encoded in any way.
func scanRaw(ctx context.Context, data []byte) []Found {
	var list []Found
	// Everything before taken belongs to a descriptor that was found.
	taken := 0
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

// maxName is the maximum length of a .proto file's name in bytes.
const maxName = 1024

// nameStart returns the offset of a protobuf field with the file name that ends at offset end: a tag, a length,
// and that many bytes of text. ok is false if there is none at or after offset floor.
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
