package rules

import (
	"encoding/hex"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/filter"
	"unwire/decode/jsontree"
	"unwire/decode/wire"
)

// maxHexValue limits the values that an index compares in hexadecimal, in bytes. Longer ones are left to the filters.
const maxHexValue = 64

// An index finds out, by one look at the fields at the top of a message, that no rule of a direction matches it. Most
// frames match no rule, and to evaluate a hundred filters for each would cost more than to relay it. The index applies
// if each rule needs a field (filter.Need) and the types of messages are not known.
type index struct {
	// numbers are the needed fields of protobuf; has is the same as a set. names are the needed members of JSON.
	numbers map[uint64]*neededField
	has     fieldSet
	names   map[string]*neededField

	// matchesEnd means that a rule matches the end of a stream.
	matchesEnd bool
}

// A neededField is what rules need of one field.
type neededField struct {
	// any means that a rule needs the field with any value. Otherwise, texts are the values that rules need, and
	// lengths the lengths of these in bytes.
	any     bool
	texts   map[string]struct{}
	lengths map[int]struct{}
}

// newIndex returns the index for the rules of a direction, or nil if a rule may match any frame.
func newIndex(rules []frameRule) *index {
	x := &index{numbers: make(map[uint64]*neededField), names: make(map[string]*neededField)}
	for _, r := range rules {
		need := r.when.need
		if need.Name == "" {
			return nil
		}
		x.matchesEnd = x.matchesEnd || r.rule.matchesEnd
		field := x.names[need.Name]
		if field == nil {
			field = &neededField{texts: make(map[string]struct{}), lengths: make(map[int]struct{})}
			x.names[need.Name] = field
		}
		if need.Number > 0 {
			x.numbers[need.Number], x.has = field, x.has|elementOf(need.Number)
		}
		field.any = field.any || need.Texts == nil
		for _, text := range need.Texts {
			field.texts[text], field.lengths[len(text)] = struct{}{}, struct{}{}
		}
	}
	return x
}

// excludes reports whether no rule matches a message. false means that the filters decide.
func (x *index) excludes(codec string, data []byte) bool {
	switch codec {
	case "proto":
		return x.excludesProto(data)
	case "json":
		return x.excludesJSON(data)
	}
	return false
}

// excludesProto is excludes for a message of protobuf.
func (x *index) excludesProto(data []byte) bool {
	for len(data) > 0 {
		tag, n := protowire.ConsumeVarint(data)
		number, typ := tag>>3, wire.Type(tag&7)
		if n < 0 || number == 0 {
			return false
		}
		data = data[n:]
		var field *neededField
		if x.has&elementOf(number) != 0 {
			field = x.numbers[number]
		}

		// Groups and malformed messages are left to the filters.
		var value uint64
		switch typ {
		case wire.Len:
			payload, n := protowire.ConsumeBytes(data)
			if n < 0 || field != nil && field.mayBe(payload) {
				return false
			}
			data = data[n:]
			continue
		case wire.Varint:
			value, n = protowire.ConsumeVarint(data)
		case wire.I64:
			value, n = protowire.ConsumeFixed64(data)
		case wire.I32:
			var v uint32
			v, n = protowire.ConsumeFixed32(data)
			value = uint64(v)
		default:
			return false
		}
		if n < 0 || field != nil && field.mayBeNumber(typ, value) {
			return false
		}
		data = data[n:]
	}
	return true
}

// mayBe reports whether a length-delimited value may be one that a rule needs, as text or in hexadecimal.
func (f *neededField) mayBe(payload []byte) bool {
	if f.any {
		return true
	}
	// A conversion in an index expression allocates nothing.
	if _, ok := f.texts[string(payload)]; ok {
		return true
	}
	if _, ok := f.lengths[hex.EncodedLen(len(payload))]; !ok {
		return false
	}
	if len(payload) > maxHexValue {
		return true
	}
	var space [2 * maxHexValue]byte
	_, ok := f.texts[string(space[:hex.Encode(space[:], payload)])]
	return ok
}

// mayBeNumber reports whether a number may be one that a rule needs.
func (f *neededField) mayBeNumber(typ wire.Type, value uint64) bool {
	if f.any {
		return true
	}
	for _, text := range filter.NumberTexts(typ, value) {
		if _, ok := f.texts[text]; ok {
			return true
		}
	}
	return false
}

// excludesJSON is excludes for JSON text.
func (x *index) excludesJSON(data []byte) bool {
	root, err := jsontree.Parse(data)
	if err != nil || root.Kind() != jsontree.Object {
		return false
	}
	for v := range root.Items() {
		f := x.names[v.Name()]
		if f == nil {
			continue
		}
		switch v.Kind() {
		case jsontree.Object, jsontree.Array:
			if f.any {
				return false
			}
			continue
		}
		if _, ok := f.texts[v.Text()]; f.any || ok {
			return false
		}
	}
	return true
}
