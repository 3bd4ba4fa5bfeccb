package value

import "strings"

// Limits of checking whether data is in a serialization such as MessagePack.
const (
	// maxItems is the maximum number of items that are checked. A longer value is assumed to be valid.
	maxItems = 1 << 12

	// maxItemDepth is the maximum nesting of items.
	maxItemDepth = 16
)

// An itemReader skips values of a self-describing serialization. If it consumes all data, the data is of that
// serialization.
type itemReader struct {
	// p is the data that was not parsed yet.
	p []byte

	// left is the number of further items that may be parsed, a limit.
	left int

	// texts is the number of map keys that are text.
	texts int
}

// next consumes and returns the next n bytes, or returns nil if there are fewer.
func (r *itemReader) next(n uint64) []byte {
	if n > uint64(len(r.p)) {
		return nil
	}
	head := r.p[:n:n]
	r.p = r.p[n:]
	return head
}

// number consumes a big-endian number of size bytes.
func (r *itemReader) number(size uint64) (v uint64, ok bool) {
	b := r.next(size)
	if b == nil {
		return 0, false
	}
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v, true
}

// allItems reports whether p consists of exactly one item, which contains a map with text keys. The function item
// skips an item with a limit on its depth.
func allItems(p []byte, item func(*itemReader, int) bool) bool {
	r := itemReader{p: p, left: maxItems}
	return item(&r, maxItemDepth) && r.texts > 0 && (len(r.p) == 0 || r.left == 0)
}

// isMessagePack reports whether p is a single MessagePack map with text keys.
func isMessagePack(p []byte) bool { return allItems(p, (*itemReader).messagePack) }

// messagePack skips a MessagePack item. It returns false if the item is malformed or nested deeper than depth.
// Source: https://github.com/msgpack/msgpack/blob/master/spec.md
func (r *itemReader) messagePack(depth int) bool {
	if r.left--; r.left <= 0 {
		return true
	}
	head := r.next(1)
	if head == nil || depth == 0 {
		return false
	}
	c := head[0]

	// Types whose first byte includes the value or the size.
	switch {
	// A small number.
	case c < 0x80 || c >= 0xe0:
		return true
	case c < 0x90:
		return r.packMap(uint64(c&0xf), depth)
	case c < 0xa0:
		return r.packList(uint64(c&0xf), depth)
	case c < 0xc0:
		return r.next(uint64(c&0x1f)) != nil
	}
	// Types whose size follows the first byte.
	switch n := uint64(1) << (c & 3); c {
	case 0xc0, 0xc2, 0xc3:
		return true
	// Bytes.
	case 0xc4, 0xc5, 0xc6:
		return r.counted(1<<(c-0xc4), 0)
	// An extension type, whose number precedes the data.
	case 0xc7, 0xc8, 0xc9:
		return r.counted(1<<(c-0xc7), 1)
	// Float and double.
	case 0xca, 0xcb:
		return r.next(4<<(c-0xca)) != nil
	case 0xcc, 0xcd, 0xce, 0xcf, 0xd0, 0xd1, 0xd2, 0xd3:
		return r.next(n) != nil
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8:
		return r.next(1+1<<(c-0xd4)) != nil
	// Text.
	case 0xd9, 0xda, 0xdb:
		return r.counted(1<<(c-0xd9), 0)
	case 0xdc, 0xdd:
		size, ok := r.number(2 << (c - 0xdc))
		return ok && r.packList(size, depth)
	case 0xde, 0xdf:
		size, ok := r.number(2 << (c - 0xde))
		return ok && r.packMap(size, depth)
	}
	return false
}

// counted skips a length of width bytes, then as many bytes as that length states, and more further bytes. It
// returns false if there are fewer.
func (r *itemReader) counted(width, more uint64) bool {
	n, ok := r.number(width)
	return ok && r.next(n+more) != nil
}

// packList skips n MessagePack items. It returns false if one is malformed.
func (r *itemReader) packList(n uint64, depth int) bool {
	for ; n > 0 && r.left > 0; n-- {
		if !r.messagePack(depth - 1) {
			return false
		}
	}
	return true
}

// packMap skips n pairs of a text key and a value in MessagePack. It returns false if one is malformed.
func (r *itemReader) packMap(n uint64, depth int) bool {
	for ; n > 0 && r.left > 0; n-- {
		if len(r.p) == 0 || !(r.p[0] > 0xa0 && r.p[0] < 0xc0 || r.p[0] == 0xd9) {
			return false
		}
		r.texts++
		if !r.packList(2, depth) {
			return false
		}
	}
	return true
}

// isCBOR reports whether p is a single CBOR map with text keys.
func isCBOR(p []byte) bool { return allItems(p, (*itemReader).cbor) }

// The major types of CBOR. Source: RFC 8949, section 3.1.
const (
	cborUint = iota
	cborNegative
	cborBytes
	cborText
	cborArray
	cborMap
	cborTag
	cborSimple

	cborBreak = 0xff
)

// cbor skips a CBOR item. It returns false if the item is malformed or nested deeper than depth.
func (r *itemReader) cbor(depth int) bool {
	if r.left--; r.left <= 0 {
		return true
	}
	head := r.next(1)
	if head == nil || depth == 0 {
		return false
	}
	major, low := head[0]>>5, head[0]&0x1f

	// The argument: a value, a length or a count.
	n := uint64(low)
	switch {
	case low < 24:
	case low < 28:
		v, ok := r.number(1 << (low - 24))
		if n = v; !ok {
			return false
		}
	case low == 31 && (major == cborArray || major == cborMap):
		// The length is indefinite: items follow up to a break.
		n = 1 << 62
	default:
		return false
	}
	switch major {
	case cborBytes, cborText:
		return r.next(n) != nil
	case cborTag:
		return r.cbor(depth - 1)
	case cborArray, cborMap:
		return r.cborItems(n, major == cborMap, low == 31, depth)
	}
	return true
}

// cborItems skips n CBOR items, or n pairs if pairs is true. If open is true, a break byte ends them.
func (r *itemReader) cborItems(n uint64, pairs, open bool, depth int) bool {
	for ; n > 0 && r.left > 0; n-- {
		if open && len(r.p) > 0 && r.p[0] == cborBreak {
			r.p = r.p[1:]
			return true
		}
		if pairs {
			if len(r.p) == 0 || r.p[0]>>5 != cborText || r.p[0]&0x1f == 0 {
				return false
			}
			r.texts++
			if !r.cbor(depth - 1) {
				return false
			}
		}
		if !r.cbor(depth - 1) {
			return false
		}
	}
	return !open || r.left <= 0
}

// derTags are the ASN.1 tags that elements of a DER sequence may have: booleans to object identifiers,
// enumerations, texts, times, and context-specific tags 0 to 4.
const derTags = "\x01\x02\x03\x04\x05\x06\x0a\x0c\x13\x16\x17\x18\x80\x81\x82\x83\x84\xa0\xa1\xa2\xa3\xa4"

// isDER reports whether p is a DER-encoded ASN.1 sequence that is completely filled by its elements, as
// in a certificate, key or signature.
func isDER(p []byte) bool {
	inner, rest, ok := derElement(p)
	if !ok || len(rest) > 0 || len(inner) < 6 {
		return false
	}
	for n := 0; len(inner) > 0; n++ {
		switch c := inner[0]; {
		// Nested sequences and sets must be well formed, too.
		case c == 0x30 || c == 0x31:
			sub, _, ok := derElement(inner)
			if _, _, good := derElement(sub); !ok || len(sub) > 0 && !good {
				return false
			}
		case strings.IndexByte(derTags, c) < 0:
			return false
		}
		if _, inner, ok = derElement(inner); !ok || n > 64 {
			return ok
		}
	}
	return true
}

// derElement returns the content of p's first DER element, and the bytes after the element.
func derElement(p []byte) (inner, rest []byte, ok bool) {
	if len(p) < 2 {
		return nil, nil, false
	}
	size, at := uint64(p[1]), 2
	if size >= 0x80 {
		width := int(size & 0x7f)
		if width < 1 || width > 4 || len(p) < 2+width {
			return nil, nil, false
		}
		r := itemReader{p: p[2:]}
		size, _ = r.number(uint64(width))
		if at = 2 + width; size < 0x80 {
			// DER requires the shortest form of a length.
			return nil, nil, false
		}
	}
	if size > uint64(len(p)-at) {
		return nil, nil, false
	}
	end := at + int(size)
	return p[at:end], p[end:], true
}
