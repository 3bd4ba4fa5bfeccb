package infer

import (
	"fmt"
	"math"
	"strings"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// entryFields returns the key and the value of a field whose messages can be a
// map's entries.
func entryFields(f *classField) (key, value *classField, ok bool) {
	kid := f.kid.find()
	if f.Len.NotMap || len(kid.numbers) != 2 || kid.fields[1] == nil || kid.fields[2] == nil {
		return nil, nil, false
	}
	key, value = kid.fields[1], kid.fields[2]
	if key.Most > 1 || value.Most > 1 || key.judgement.Odd+value.judgement.Odd > 0 || value.group != nil {
		return nil, nil, false
	}
	return key, value, true
}

// unpackedValue is how a map's value is read, which cannot be packed, and by how
// much the evidence for a map changes with that.
func unpackedValue(v kind.Judgement) (kind.Judgement, float64) {
	if v.Kind != wire.KindPacked {
		return v, 0
	}
	notPacked := 0.0
	for _, a := range v.Others {
		if a.Kind == wire.KindBytes {
			notPacked = a.P
		}
	}
	v.Kind = wire.KindBytes
	return v, math.Log((notPacked + leastBytes) / v.P)
}

// mapKeyType is the type of a map's key, "" where it can be none.
func mapKeyType(key *classField, fresh float64) string {
	switch key.judgement.Kind {
	case wire.KindString:
		return "string"
	case wire.KindVarint:
		return kind.NumberType(key.Field, key.judgement, kind.Use{Number: 1, Fresh: fresh, Key: true}).Name
	case wire.KindFixed32, wire.KindFixed64:
		if typ := kind.NumberType(key.Field, key.judgement, kind.Use{}).Name; typ != "double" && typ != "float" {
			return typ
		}
	}
	return ""
}

// declareMap declares a field as a map if the evidence says so.
func (w *writer) declareMap(d *declared, f *classField) bool {
	key, value, ok := entryFields(f)
	if !ok {
		return false
	}
	kid := f.kid.find()
	odds := 0.0
	if f.Most > 1 {
		odds = mapOdds(f.Field, key, value, w.habit)
	} else {
		odds = singleMapOdds(f.Field, kid.fresh(), key, value, w.habit, w.texts.share(key))
	}
	of, change := unpackedValue(value.judgement)
	odds += change

	p := round(1 / (1 + math.Exp(-odds)))
	if p < 0.5 {
		d.LabelP = round(d.LabelP * (1 - p))
		return false
	}
	if kid.known.written() || kid.known.name == timestampType {
		return false
	}
	keyType := mapKeyType(key, kid.fresh())
	if keyType == "" {
		return false
	}

	valueText, valueType := string(of.Kind), string(of.Kind)
	switch of.Kind {
	case wire.KindMessage:
		entry := &class{name: typeName(d.Message[strings.LastIndexByte(d.Message, '.')+1:], d.number)}
		valueText, valueType, d.TypeP = w.typeOf(value.kid, entry, 2)
	case wire.KindVarint, wire.KindFixed32, wire.KindFixed64:
		valueText = kind.NumberType(value.Field, of, kind.Use{Number: 2, Fresh: kid.fresh()}).Name
		valueType = valueText
	}
	d.Label, d.LabelP = Map, p
	d.typeText = fmt.Sprintf("map<%s, %s>", keyType, valueText)
	d.Type = fmt.Sprintf("map<%s, %s>", keyType, valueType)
	return true
}

// leastBytes is the least probability of bytes where numbers are likelier.
const leastBytes = 0.01
