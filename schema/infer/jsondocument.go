package infer

import (
	"slices"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// documentBytes is the probability that what holds nothing but one JSON document has it
// as bytes: such types are there to carry what was serialized elsewhere, and bytes, which
// any value fits, are the safer declaration.
const documentBytes = 0.55

// documents judges again the types that hold nothing but a JSON document.
func (g *graph) documents() {
	for _, c := range g.reached() {
		if c.root != "" || len(c.numbers) != 1 || c.numbers[0] != 1 {
			continue
		}
		f := c.fields[1]
		if f.Len == nil || f.chosen != nil || f.judgement.Kind != wire.KindString || f.Len.Forms.JSON < f.Len.N || f.Most > 1 {
			continue
		}
		v := f.judgement
		at := slices.IndexFunc(v.Others, func(a kind.Alternative) bool { return a.Kind == wire.KindBytes })
		if at < 0 {
			continue
		}
		v.Others = slices.Clone(v.Others)
		both := v.P + v.Others[at].P
		v.Kind, v.P = wire.KindBytes, round(both*documentBytes)
		v.Others[at].Kind, v.Others[at].P = wire.KindString, round(both*(1-documentBytes))
		f.judgement = v
	}
}
