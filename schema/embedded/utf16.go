package embedded

import (
	"context"
	"encoding/base64"
)

// scanUTF16 finds descriptors in base64 in UTF-16 in the string heap of a .NET assembly. A long string is
// stored in pieces: each follows its length and precedes a byte that is 0 or 1.
func scanUTF16(ctx context.Context, data []byte) []Found {
	var words [][]byte
	for _, word := range base64Suffixes() {
		words = append(words, wide(word))
	}
	var list []Found
	is := base64Chars()
	done := 0
	for _, at := range places(ctx, data, words) {
		if at < done || len(list) >= maxFound {
			continue
		}
		if ctx.Err() != nil {
			break
		}

		begin := at
		for begin-2 >= done && at-begin < maxName*4 && is[data[begin-2]] && data[begin-1] == 0 {
			begin -= 2
		}
		begin = before(data, begin, done, is)
		// The descriptor may continue in further pieces.
		text, _ := pieces(data, begin, is, maxDescriptor)
		if f, size, skip := parseBase64(text); f != nil {
			list = append(list, Found{File: f, Form: formUTF16, Offset: begin, Size: size})
			_, done = pieces(data, begin, is, skip+base64.RawStdEncoding.EncodedLen(size))
		}
	}
	return list
}

// wide returns the UTF-16 (little-endian) encoding of ASCII text.
func wide(s []byte) []byte {
	out := make([]byte, 0, 2*len(s))
	for _, c := range s {
		out = append(out, c, 0)
	}
	return out
}

// before returns the offset of the first of the pieces (see scanUTF16) that precede the one at offset begin,
// for file names that are longer than a piece. All pieces have the same length. It does not go before offset
// floor.
func before(data []byte, begin, floor int, is [256]bool) int {
	if begin < 1 {
		return begin
	}
	size := int(data[begin-1])
	for range maxName {
		// A piece is a length, the characters, and the final byte.
		at := begin - 1 - size
		if at-1 < floor || int(data[at-1]) != size || data[begin-2] > 1 {
			break
		}
		for i := at; i < begin-2; i += 2 {
			if !is[data[i]] || data[i+1] != 0 {
				return begin
			}
		}
		begin = at
	}
	return begin
}

// pieces concatenates the pieces (see scanUTF16) from offset begin on, up to most characters, and returns the
// offset of their end. All pieces except the last have the same length.
func pieces(data []byte, begin int, is [256]bool, most int) (text []byte, end int) {
	first := 0
	for at := begin; ; {
		n := len(text)
		for at+1 < len(data) && is[data[at]] && data[at+1] == 0 && len(text) < most {
			text = append(text, data[at])
			at += 2
		}
		end = at
		if n == 0 {
			first = len(text)
		}
		if len(text) == n || len(text)-n != first || len(text) >= most || at+1 >= len(data) || data[at] > 1 {
			return text, end
		}
		// The next piece must have a length that fits its characters.
		size, head := int(data[at+1]), 2
		if size&0xc0 == 0x80 && at+2 < len(data) {
			size, head = size&0x3f<<8|int(data[at+2]), 3
		}
		at += head
		if size < 3 || size%2 == 0 || size > 2*first+1 || at+size > len(data) {
			return text, end
		}
	}
}
