// Package textrun finds the places at which a secret may begin in bytes that are mostly not text, eight bytes at
// a time. Everything that package redact searches for begins with several consecutive bytes of text, which are
// rare in compressed, encrypted and binary data.
//
// Next processes windows of 64 bytes. For each window it computes a word with a bit for each byte that is text,
// and from it the runs of text.
//
// Layout: bit 8*j+k of a word belongs to byte j of the k-th eight bytes of the window. So one shift places the
// bits of eight bytes in the word. To move by n bytes takes one shift of the word, and one of the bits that move
// into the next eight bytes.
package textrun

import (
	"encoding/binary"
	"math/bits"
)

const (
	// Window is the number of bytes that are examined together, with bit operations.
	Window = 64

	// Stride is the distance between the beginnings of two windows in bytes. They overlap, so that text which
	// begins in the last eight bytes of a window is found in the next one.
	Stride = Window - 8

	// AroundSign is the smallest length in bytes of a run of text in which a sign (see Signs) is a candidate.
	AroundSign = 4

	// Least is the smallest length in bytes of a run of text that may be a secret.
	Least = 7

	// LeastWide is the smallest length in bytes of a run of UTF-16 text that may be a secret.
	LeastWide = 23

	// dense is the number of positions in a window at which four bytes of text begin, from which on the whole
	// window counts as text.
	dense = 24
)

// IsText reports whether c counts as text: all of ASCII except control characters that are not white space. For
// speed, a few other control characters count too.
func IsText(c byte) bool { return c < 0x80 && c&textBits != 0 }

// textBits are the bits of which each text byte has at least one. In ASCII, only the bytes 0 to 7 and 16 to 23
// have none of them.
const textBits = 0x68

const (
	// each, multiplied by a byte, repeats the byte in all eight bytes of a word. highest is the highest bit of
	// each byte.
	each    = 0x0101010101010101
	highest = 0x80 * each
)

// masks are constants for textOf. They are variables, because the compiler would load constants again for each
// use, which takes a third of the time.
var masks = struct{ text, highest uint64 }{textBits * each, highest}

// textOf returns the set of bytes in b that are text: one bit per byte, in an order that inOrder converts.
func textOf(b *[Window]byte) uint64 {
	m, h := masks.text, masks.highest
	w := binary.LittleEndian.Uint64(b[0:])
	other := (h - w&m | w) & h >> 7
	w = binary.LittleEndian.Uint64(b[8:])
	other |= (h - w&m | w) & h >> 6
	w = binary.LittleEndian.Uint64(b[16:])
	other |= (h - w&m | w) & h >> 5
	w = binary.LittleEndian.Uint64(b[24:])
	other |= (h - w&m | w) & h >> 4
	w = binary.LittleEndian.Uint64(b[32:])
	other |= (h - w&m | w) & h >> 3
	w = binary.LittleEndian.Uint64(b[40:])
	other |= (h - w&m | w) & h >> 2
	w = binary.LittleEndian.Uint64(b[48:])
	other |= (h - w&m | w) & h >> 1
	w = binary.LittleEndian.Uint64(b[56:])
	return ^(other | (h-w&m|w)&h)
}

// Signs are the bytes that are candidates for the beginning of a match if they are within a run of text.
const Signs = "\"&:=>?"

// signsOf returns the set of bytes in b that are in Signs, as textOf does. All of b must be ASCII.
func signsOf(b *[Window]byte) uint64 {
	return ^(notSign(b[0:])>>7 | notSign(b[8:])>>6 | notSign(b[16:])>>5 | notSign(b[24:])>>4 |
		notSign(b[32:])>>3 | notSign(b[40:])>>2 | notSign(b[48:])>>1 | notSign(b[56:]))
}

// notSign returns, for eight bytes, the highest bit of each byte that is not in Signs. Each comparison tests
// two signs at once, which differ in one bit.
func notSign(b []byte) uint64 {
	const low = 0x7f * each
	w := binary.LittleEndian.Uint64(b)
	quoteAnd := w&(0x7b*each) ^ '"'*each
	colonGreater := w&(0x7b*each) ^ ':'*each
	equalsQuestion := w&(0x7d*each) ^ '='*each
	return (quoteAnd + low) & (colonGreater + low) & (equalsQuestion + low) & highest
}

// after shifts a bit set of a window, as textOf returns it, by n bytes, 1 to 7: the bit of each byte becomes
// that of the byte n bytes after it, or 0.
func after(word uint64, n int) uint64 {
	return word>>(8*n) | word>>1&(0x7f*each)<<(64-8*n)
}

// before shifts a bit set of a window, as textOf returns it, by n bytes, 1 to 7: the bit of each byte becomes
// that of the byte n bytes before it, or 0.
func before(word uint64, n int) uint64 {
	return word<<(8*n) | word<<1&(0xfe*each)>>(64-8*n)
}

// begins is the set of the bytes of a window at which runs of text may begin: those in its first Stride bytes.
const begins = 0x7f * each

// placesOf returns the candidate positions in a window (see Next). runs is the set of positions at which four
// bytes of text begin.
func placesOf(b *[Window]byte, runs uint64) uint64 {
	long := runs & after(runs, Least-AroundSign) & begins
	runs &= begins
	return long | signsOf(b)&(runs|before(runs, 1)|before(runs, 2))
}

// hasWide reports whether 16 bytes, from a multiple of eight on, look like UTF-16: every second byte is text.
// text is the result of textOf.
func hasWide(text uint64) bool {
	// A column of ones is eight bytes with text at odd ones, a column of zeros at even ones.
	odd := text ^ 0x00ff00ff00ff00ff
	all, none := odd&(odd>>32), odd|odd>>32
	all, none = all&(all>>16), none|none>>16
	all, none = all&(all>>8), none|none>>8
	wide := (all | ^none) & 0xff
	return wide&(wide>>1) != 0
}

// Next searches b, from index at on, window by window, and returns the index of the first window in which a
// secret may begin, with the set of candidate positions (bit n is byte n of the window). Candidates are: a sign
// within at least AroundSign bytes of text and followed by text, and each byte that begins at least Least bytes
// of text. The run of text begins in the window's first Stride bytes.
//
// If a window is mostly text, or contains UTF-16 text and wide is set, Next returns that window with an
// empty bit set; UTF-16 text may begin before the window. If no window qualifies, Next returns the
// position after the last one.
func Next(b []byte, at int, wide bool) (window int, places uint64) {
	for ; at+Window <= len(b); at += Stride {
		w := (*[Window]byte)(b[at:])
		text := textOf(w)
		runs := text & after(text, 1) & after(text, 2) & after(text, 3)
		if runs != 0 {
			if bits.OnesCount64(runs) >= dense || wide && hasWide(text) {
				return at, 0
			}
			if found := placesOf(w, runs); found != 0 {
				return at, inOrder(found)
			}
		} else if wide && hasWide(text) {
			return at, 0
		}
	}
	return at, 0
}

// inOrder converts a bit set of a window, as textOf returns it, so that bit i of the result is that of byte i.
// It transposes 8×8 bits.
//
// Source: Warren, Hacker's Delight, 7-3
func inOrder(x uint64) uint64 {
	t := (x ^ x>>7) & 0x00aa00aa00aa00aa
	x ^= t ^ t<<7
	t = (x ^ x>>14) & 0x0000cccc0000cccc
	x ^= t ^ t<<14
	t = (x ^ x>>28) & 0x00000000f0f0f0f0
	return x ^ t ^ t<<28
}
