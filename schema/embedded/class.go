package embedded

import (
	"bytes"
	"context"
	"unicode/utf8"

	"unwire/schema/classfile"
)

// ScanClass returns the file descriptors in a Java class file. Generated code stores each in one or more string
// literals, with one character for each byte.
//
// Errors: the context's. A malformed file is read as far as possible.
func ScanClass(ctx context.Context, data []byte) ([]Found, error) {
	if !classfile.Is(data) || !bytes.Contains(data, []byte(suffix)) {
		return nil, nil
	}
	class := classfile.Parse(data)
	var list []Found
	for i := range class.Methods {
		for _, f := range scanRaw(ctx, loadedText(class, &class.Methods[i])) {
			f.Form, f.Offset = formClass, 0
			list = append(list, f)
		}
	}
	return list, ctx.Err()
}

// loadedText concatenates the string literals in the order in which a method loads them. Their order in the
// constant pool may differ.
func loadedText(class *classfile.File, m *classfile.Member) (text []byte) {
	for in := range m.Instructions() {
		if s, ok := class.Text(in.Index); ok && len(text) < maxDescriptor {
			text = appendLatin(text, s)
		}
	}
	return text
}

// appendLatin decodes text in modified UTF-8 and appends one byte for each character to out. It appends nothing
// if the text has characters above U+00FF.
func appendLatin(out, text []byte) []byte {
	was := out
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		// These are two bytes for U+0080 to U+00FF.
		case c&0xfc == 0xc0 && i+1 < len(text) && text[i+1]&0xc0 == 0x80:
			out = append(out, c<<6|text[i+1]&0x3f)
			i += 2
		default:
			return was
		}
	}
	return out
}
