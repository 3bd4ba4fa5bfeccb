package infer

import (
	"fmt"
	"math"
	"strings"

	"unwire/decode/kind"
	"unwire/decode/wire"
)

// entryFields returns the key and the value of a message field whose messages can be map entries. ok is false
// if they cannot.
func entryFields(f *classField) (key, value *classField, ok bool) {
	kid := f.childClass.find()
	if f.Len.NotMap || len(kid.numbers) != 2 || kid.fields[1] == nil || kid.fields[2] == nil {
		return nil, nil, false
	}
	key, value = kid.fields[1], kid.fields[2]
	if key.Most > 1 || value.Most > 1 || key.judgement.Odd+value.judgement.Odd > 0 || value.groupClass != nil {
		return nil, nil, false
	}
	return key, value, true
}

// unpackedValue corrects the judgement v about the values of a possible map by excluding packed lists, which
// map values cannot be. change is the change in log-odds (nats) that the field is a map.
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
	return v, math.Log((notPacked + minBytesP) / v.P)
}

// mapKeyType returns the type of a map key, or "" if protobuf allows no such key. fresh is the share of
// messages that are not copies of others.
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

// couldBeMap is the remark on a list that is not declared as a map because that would lose the order of
// elements.
const couldBeMap = "could be a map: no key occurred twice in a message"

// orderMatters reports whether the entries have an order that a map would lose. Encoders of maps sort the keys,
// or write them in the order of a hash table, so that two keys come in either order.
func orderMatters(f, key *classField) bool {
	if f.Most < 2 || f.Len.Reordered() {
		return false
	}
	switch key.judgement.Kind {
	case wire.KindString:
		return f.Len.Descending > 0
	case wire.KindVarint:
		// Keys are compared as they are encoded, which is their order only if none is negative.
		return f.Len.Descending > 0 || key.Varint.Negative > 0
	}
	return true
}

// declareMap changes the declaration d of the field f to a map if that is more likely than not. It reports
// whether it did.
func (w *writer) declareMap(d *declared, f *classField) bool {
	key, value, ok := entryFields(f)
	if !ok {
		return false
	}
	kid := f.childClass.find()

	// A list reads the same bytes as a map and keeps their order, so it is written unless order does not matter.
	if orderMatters(f, key) {
		if mapKeyType(key, kid.distinctShare()) != "" {
			d.couldBe, kid.keyed = couldBeMap, true
		}
		return false
	}

	// The evidence for and against a map, in nats.
	odds := 0.0
	if f.Most > 1 {
		odds = mapOdds(f.Field, key, value, w.conventions)
	} else {
		odds = singleMapOdds(f.Field, kid.distinctShare(), key, value, w.conventions, w.keyTexts.share(key))
	}
	of, change := unpackedValue(value.judgement)
	odds += change

	// The odds become a probability by the logistic function.
	p := round(1 / (1 + math.Exp(-odds)))
	if p < 0.5 {
		if f.Most > 1 {
			d.couldBe = couldBeMap
		}
		d.LabelP = round(d.LabelP * (1 - p))
		return false
	}

	// A repeated well-known type, such as Any, looks like entries as well.
	if kid.known.written() || kid.known.name == timestampType {
		return false
	}
	keyType := mapKeyType(key, kid.distinctShare())
	if keyType == "" || keyType == "sint32" || keyType == "sint64" {
		return false
	}

	valueText, valueType := string(of.Kind), string(of.Kind)
	switch of.Kind {
	case wire.KindMessage:
		entry := &class{name: typeName(d.Message[strings.LastIndexByte(d.Message, '.')+1:], d.number)}
		valueText, valueType, d.TypeP = w.typeOf(value.childClass, entry, 2)
	case wire.KindVarint, wire.KindFixed32, wire.KindFixed64:
		valueText = kind.NumberType(value.Field, of, kind.Use{Number: 2, Fresh: kid.distinctShare()}).Name
		valueType = valueText
	}
	d.Label, d.LabelP = Map, p
	d.typeText = fmt.Sprintf("map<%s, %s>", keyType, valueText)
	d.Type = fmt.Sprintf("map<%s, %s>", keyType, valueType)
	return true
}

// minBytesP is added to the probability of bytes in unpackedValue. It keeps the logarithm finite.
const minBytesP = 0.01
