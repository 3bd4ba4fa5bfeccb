package rules

import (
	"encoding/hex"

	"google.golang.org/protobuf/encoding/protowire"

	"unwire/decode/filter"
	"unwire/decode/jsontree"
	"unwire/decode/wire"
)

// maxHexValue is the length in bytes up to which an index compares values in hexadecimal. Longer ones are left to the
// filters.
const maxHexValue = 64

// An index determines, by one look at the top-level fields of a message, that no rule of a direction can match it.
// Most frames match no rule, and evaluating a hundred filters for each would cost more than relaying it. There is an
// index only if the filter of each rule requires some field (filter.Need); it is not used if filters need message
// types.
type index struct {
	// numbers are the required values of protobuf fields, by field number.
	numbers map[uint64]*neededField
	// has is the set of the keys of numbers.
	has fieldSet
	// names are the required values of fields by name, for JSON messages.
	names map[string]*neededField

	// matchesEnd means that a rule also matches frames that end a stream.
	matchesEnd bool
}

// A neededField lists the values of one field of which rules require one.
type neededField struct {
	// any means that a rule requires only that the field is present.
	any bool
	// texts are the values, as text, that rules require.
	texts map[string]struct{}
	// lengths are the lengths of texts in bytes.
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

// excludes reports whether no rule can match a message with a codec ("proto" or "json"). false means that the filters
// must be evaluated.
func (x *index) excludes(codec string, data []byte) bool {
	switch codec {
	case "proto":
		return x.excludesProto(data)
	case "json":
		return x.excludesJSON(data)
	}
	return false
}

// excludesProto reports whether no rule can match a protobuf message. false means that the filters must be evaluated.
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

// mayBe reports whether a length-delimited field value may be one that a rule requires, compared as text and in
// hexadecimal.
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

// mayBeNumber reports whether a numeric field value of a wire type may be one that a rule requires.
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

// excludesJSON reports whether no rule can match a JSON message. false means that the filters must be evaluated.
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
