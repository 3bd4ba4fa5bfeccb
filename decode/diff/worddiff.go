package diff

import (
	"hash/maphash"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxTokens bounds the words of a text that are compared one by one.
const maxTokens = 200_000

// A Segment is a run of a text that both versions have (Op ""), only the old
// one (Remove) or only the new one (Add).
type Segment struct {
	Op   Op
	Text string
}

// Words splits two versions of a text into what is common and what is not, by
// words, spaces and single other characters. With lines, by whole lines.
//
// Shape: what was removed stands before what was added in its place. The
// segments without the added ones are old, without the removed ones now.
// Limits: texts of more than 200,000 words are compared by their ends alone.
func Words(old, now string, lines bool) []Segment {
	split := tokensOf
	if lines {
		split = func(s string) []string { return strings.SplitAfter(s, "\n") }
	}
	as, bs := split(old), split(now)
	if len(as) > maxTokens || len(bs) > maxTokens {
		return ends(old, now)
	}
	seed := maphash.MakeSeed()
	mates := make([]int, len(as))
	c := commoner{ha: make([]uint64, len(as)), hb: make([]uint64, len(bs)), pair: func(i, j int) { mates[i] = j }}
	left, right := make([]int, len(as)), make([]int, len(bs))
	for i, s := range as {
		mates[i], left[i], c.ha[i] = -1, i, maphash.String(seed, s)
	}
	for j, s := range bs {
		right[j], c.hb[j] = j, maphash.String(seed, s)
	}
	c.common(left, right, 0)
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

// ends is what two texts begin and end with, and what is between.
func ends(old, now string) []Segment {
	head := 0
	for head < min(len(old), len(now)) && old[head] == now[head] {
		head++
	}
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

// segments joins what has one Op.
type segments struct{ list []Segment }

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

// tokensOf splits a text into words, runs of spaces, and single other characters.
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
