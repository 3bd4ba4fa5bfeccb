package embedded

import (
	"bytes"
	"context"
	"encoding/base64"
	"slices"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/interrupt"
)

// base64Suffixes returns the base64 encodings of ".proto" at the three possible offsets within a group of three
// bytes. Characters that also encode neighbouring bytes are left out.
func base64Suffixes() [][]byte {
	return [][]byte{[]byte("LnByb3Rv"), []byte("5wcm90b"), []byte("ucHJvdG")}
}

// base64Chars returns a table of the bytes that are base64 characters in one of the two alphabets.
func base64Chars() (is [256]bool) {
	for c := range is {
		is[c] = 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_'
	}
	return is
}

// scanBase64 finds file descriptors that are encoded in base64 without line breaks.
func scanBase64(ctx context.Context, data []byte) []Found {
	var list []Found
	is := base64Chars()

	// Everything before done has been read.
	done := 0

	// end is the end of the base64 text that was examined last.
	end := 0
	for _, at := range places(ctx, data, base64Suffixes()) {
		if at < done || len(list) >= maxFound {
			continue
		}
		if ctx.Err() != nil {
			break
		}

		// The name is near the beginning of the descriptor, so the text begins at most that far before.
		begin := at
		for begin > done && at-begin < maxName*2 && is[data[begin-1]] {
			begin--
		}
		// end never moves back, so the whole scan takes linear time.
		for end = max(end, at); end < len(data) && is[data[end]]; {
			end++
		}
		if f, size, skip := parseBase64(data[begin:end]); f != nil {
			list = append(list, Found{File: f, Form: formBase64, Offset: begin + skip, Size: size})
			done = begin + skip + base64.RawStdEncoding.EncodedLen(size)
		}
	}
	return list
}

// places returns the sorted offsets in data of all occurrences of the given words.
func places(ctx context.Context, data []byte, words [][]byte) []int {
	var list []int
	for _, word := range words {
		for at := 0; ctx.Err() == nil && len(list) < maxFound; at += len(word) {
			i := interrupt.Index(ctx, data[at:], word)
			if i < 0 {
				break
			}
			at += i
			list = append(list, at)
		}
	}
	slices.Sort(list)
	return list
}

// parseBase64 finds and decodes a descriptor in base64 text. size is the size of the descriptor in bytes, and
// skip the number of characters before it. f is nil if there is none.
func parseBase64(text []byte) (f *descriptorpb.FileDescriptorProto, size, skip int) {
	// The first byte of a descriptor is the tag of its name, which is C and one of g to v in base64.
	for skip = 0; skip+8 <= len(text) && skip <= maxName; skip++ {
		if text[skip] != 'C' || text[skip+1] < 'g' || text[skip+1] > 'v' {
			continue
		}
		plain := decodeBase64(text[skip:min(len(text), skip+gzipHead*4/3)])
		if !startsAsDescriptor(plain) {
			continue
		}
		if f, size = parse(decodeBase64(text[skip:min(len(text), skip+maxDescriptor)])); f != nil {
			return f, size, skip
		}
	}
	return nil, 0, 0
}

// decodeBase64 decodes text in either alphabet, up to the last complete byte. It returns nil if other
// characters occur.
func decodeBase64(text []byte) []byte {
	if bytes.ContainsAny(text, "-_") {
		text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("-"), []byte("+")), []byte("_"), []byte("/"))
	}
	if len(text)%4 == 1 {
		text = text[:len(text)-1]
	}
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(text)))
	n, err := base64.RawStdEncoding.Decode(out, text)
	if err != nil {
		return nil
	}
	return out[:n]
}
