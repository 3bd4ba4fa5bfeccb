package text

import (
	"bytes"

	"unwire/decode/kind/stablehash"
)

const (
	// memoPlaces is the number of payloads that a memo remembers.
	memoPlaces = 1024

	// maxRemembered is the maximum size in bytes of a payload that a memo remembers, and maxRememberedText that of its
	// text.
	maxRemembered, maxRememberedText = 64, 512
)

// A memo has the text of payloads whose text follows from their bytes, because the messages of a stream repeat words,
// roles and identifiers. It is a direct-mapped cache: each payload has one place, by its hash.
//
// Limits: a payload is remembered when it occurs for the second time, so that payloads that never repeat cost little.
type memo struct {
	// places has the payload at each place; it is nil before the first payload.
	places []rememberedPayload

	// seen has, by place, a part of the hash of the payload that occurred last there.
	seen []uint32
}

// A rememberedPayload is a payload with the text that was printed for it.
type rememberedPayload struct {
	// payload is a copy of the payload.
	payload []byte

	// depth is the depth of indentation.
	depth int

	// text is what was printed, from the brace before the payload to the end of the last line.
	text []byte

	// spent is the number of bytes that were decoded to find the content of the payload.
	spent int64
}

// repeatedPayload prints the value of node c, whose text follows from its bytes, in braces.
func (p *printer) repeatedPayload(c int32, depth int) {
	data := p.t.Payload(c)
	if len(data) == 0 || len(data) > maxRemembered {
		p.payload(c, nil, depth)
		return
	}
	if p.memo.places == nil {
		p.memo.places, p.memo.seen = make([]rememberedPayload, memoPlaces), make([]uint32, memoPlaces)
	}
	hash := stablehash.Bytes(data)
	place, seen := &p.memo.places[hash%memoPlaces], &p.memo.seen[hash%memoPlaces]
	if place.depth == depth && bytes.Equal(place.payload, data) && p.find.Spend(place.spent) {
		p.w.Write(place.text)
		return
	}

	// The text is remembered if none of it was passed on meanwhile, and if it has no offsets, which differ.
	again := *seen == uint32(hash>>32)
	*seen = uint32(hash >> 32)
	start, passed, offsets, spent := len(p.w.text), p.w.passed, p.offsets, p.find.Spent()
	p.payload(c, nil, depth)
	if !again || p.w.passed != passed || p.offsets != offsets || len(p.w.text)-start > maxRememberedText || !p.find.Spend(0) {
		return
	}
	place.payload, place.text = append(place.payload[:0], data...), append(place.text[:0], p.w.text[start:]...)
	place.depth, place.spent = depth, p.find.Spent()-spent
}
