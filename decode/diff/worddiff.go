package diff

import (
	"hash/maphash"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxTokens is the maximum number of words of a text that are compared individually.
const maxTokens = 200_000

// A Segment is a part of a text that is common to two versions, or only in one of them.
type Segment struct {
	// Op is "" for a part in both versions, Remove for one only in the old version, and Add for one only in the
	// new version.
	Op Op

	// Text is the text of the segment.
	Text string
}

// Words divides two versions of a text into common and different segments of words, spaces and single other
// characters. If lines is true, segments consist of whole lines.
//
// Shape: removed segments precede added ones in the same place. The segments without added ones are the old
// text, and those without removed ones the new text.
//
// Limits: texts of more than 200,000 words are compared by their beginning and end only.
func Words(old, now string, lines bool) []Segment {
	split := tokensOf
	if lines {
		split = func(s string) []string { return strings.SplitAfter(s, "\n") }
	}
	as, bs := split(old), split(now)

	// To bound the time, longer texts are compared only by their common ends.
	if len(as) > maxTokens || len(bs) > maxTokens {
		return ends(old, now)
	}
	seed := maphash.MakeSeed()
	mates := make([]int, len(as))
	c := lcs{ha: make([]uint64, len(as)), hb: make([]uint64, len(bs)), pair: func(i, j int) { mates[i] = j }}
	left, right := make([]int, len(as)), make([]int, len(bs))

	// Words are compared by hash, with a seed of this run, so no input can provoke collisions.
	for i, s := range as {
		mates[i], left[i], c.ha[i] = -1, i, maphash.String(seed, s)
	}
	for j, s := range bs {
		right[j], c.hb[j] = j, maphash.String(seed, s)
	}
	c.pairCommon(left, right, 0)

	// Interleave the segments of both texts.
	var b segments
	j := 0
	for i := 0; i < len(as); {
		if mates[i] >= 0 {
			for ; j < mates[i]; j++ {
				b.addText(Add, bs[j])
			}
			b.addText("", as[i])
			i, j = i+1, j+1
			continue
		}
		b.addText(Remove, as[i])
		i++
	}
	for ; j < len(bs); j++ {
		b.addText(Add, bs[j])
	}
	return b.list
}

// ends compares two texts by their ends only. It returns the common beginning, the differing middles, and the
// common end.
func ends(old, now string) []Segment {
	head := 0
	for head < min(len(old), len(now)) && old[head] == now[head] {
		head++
	}
	// Do not divide a character.
	for head > 0 && head < len(old) && !utf8.RuneStart(old[head]) {
		head--
	}
	tail := 0
	for tail < min(len(old), len(now))-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	for tail > 0 && !utf8.RuneStart(old[len(old)-tail]) {
		tail--
	}
	var b segments
	b.addText("", old[:head])
	b.addText(Remove, old[head:len(old)-tail])
	b.addText(Add, now[head:len(now)-tail])
	b.addText("", old[len(old)-tail:])
	return b.list
}

// segments collects segments, and joins adjacent ones with the same Op.
type segments struct {
	// list are the segments (unchanged, removed or inserted parts of a text) so far, in which neighbours have
	// different Ops.
	list []Segment
}

// addText appends a part of the text that is common, removed or added.
func (b *segments) addText(op Op, s string) {
	if s == "" {
		return
	}
	if n := len(b.list); n > 0 && b.list[n-1].Op == op {
		b.list[n-1].Text += s
		return
	}
	b.list = append(b.list, Segment{op, s})
}

// tokensOf divides a text into words, runs of spaces, and single other characters.
func tokensOf(s string) []string {
	var list []string
	kind := func(r rune) int {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
			return 1
		case r == ' ' || r == '\t':
			return 2
		}
		return 0
	}
	start, last := 0, 0
	for i, r := range s {
		k := kind(r)
		if i > start && (k != last || k == 0) {
			list = append(list, s[start:i])
			start = i
		}
		last = k
	}
	if start < len(s) {
		list = append(list, s[start:])
	}
	return list
}
