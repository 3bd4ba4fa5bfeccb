package rules

import (
	"encoding/hex"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode/filter"
	"unwire/decode/jsontree"
	"unwire/decode/search"
	"unwire/decode/wire"
)

// maxHexValue is the length in bytes up to which an index compares values in hexadecimal. Longer ones are left to the
// filters.
const maxHexValue = 64

// maxLow is the field number from which on an index uses a map instead of a table.
const maxLow = 1024

// An index determines, by one look at the top-level fields of a message and one search for texts, that no rule of a
// direction can match it. Most frames match no rule, and evaluating a hundred filters for each would cost more than
// relaying it. An index covers the rules whose filters require some field or a literal text (filter.Need). If
// filters refer to fields by name, there is an index for each message type.
type index struct {
	// low are the required values of protobuf fields with a number below maxLow, by field number; nil for others. It
	// ends at the highest number.
	low []*neededField
	// high are those of fields with higher numbers.
	high map[uint64]*neededField
	// names are the required values of fields by name, for JSON messages.
	names map[string]*neededField

	// text matches the texts that rules require which require no field; nil if there are none.
	text *search.Text

	// matchesEnd means that a rule that the index covers also matches frames that end a stream.
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
	// someLengths is the set of lengths, of which all from 63 share an element.
	someLengths uint64
}

// lengthElement returns the element of a length in neededField.someLengths.
func lengthElement(n int) uint64 { return 1 << min(n, 63) }

// hasLength reports whether a text may have n bytes. false is certain.
func (f *neededField) hasLength(n int) bool { return f.someLengths&lengthElement(n) != 0 }

// add adds a text.
func (f *neededField) add(text string) {
	f.texts[text], f.lengths[len(text)] = struct{}{}, struct{}{}
	f.someLengths |= lengthElement(len(text))
}

// A typedIndex is an index for the protobuf messages of one type.
type typedIndex struct {
	*index
	// messageType is the definition of the messages.
	messageType protoreflect.MessageDescriptor
}

// indexFor returns the index for messages of a direction with a codec, or nil if there is none.
func (x *exchange) indexFor(d captures.Direction, codec string) *index {
	md := x.messageType(d)
	switch {
	case md == nil:
		return x.indexes[d]
	case codec != "proto":
		return nil
	}
	t := x.typedIndexes[d].Load()
	if t == nil || t.messageType != md {
		t = &typedIndex{newIndex(x.rules[d], md), md}
		x.typedIndexes[d].Store(t)
	}
	return t.index
}

// canIndex reports whether an index can cover the rules with a need.
func canIndex(need filter.Need) bool {
	return !need.None() && !slices.ContainsFunc(need.Text, func(t *search.Text) bool { return !t.IsLiteral() })
}

// newIndex returns the index for the rules of a direction, or nil if it would cover none. md is the type of the
// messages, or nil if it is not known.
func newIndex(rules []frameRule, md protoreflect.MessageDescriptor) *index {
	x := &index{names: make(map[string]*neededField)}
	var texts []*search.Text
	for _, r := range rules {
		need := r.when.need
		if !r.indexed {
			continue
		}
		x.matchesEnd = x.matchesEnd || r.rule.matchesEnd
		if need.Text != nil {
			texts = append(texts, need.Text...)
			continue
		}
		field := x.names[need.Name]
		if field == nil {
			field = &neededField{texts: make(map[string]struct{}), lengths: make(map[int]struct{})}
			x.names[need.Name] = field
		}
		x.setField(need.Number, field)
		if md != nil {
			x.setNamed(need.Name, md, field)
		}
		// The declaration of a field decides how its value is compared.
		field.any = field.any || need.Texts == nil || md != nil
		for _, text := range need.Texts {
			field.add(text)
		}
	}
	if len(texts) > 0 {
		x.text, _ = search.AnyOf(texts)
	}
	if x.text == nil && len(x.names) == 0 {
		return nil
	}
	return x
}

// setField sets the required values of the protobuf field with a number; 0 means that there is none.
func (x *index) setField(number uint64, f *neededField) {
	switch {
	case number == 0:
	case number < maxLow:
		if missing := int(number) + 1 - len(x.low); missing > 0 {
			x.low = append(x.low, make([]*neededField, missing)...)
		}
		x.low[number] = f
	default:
		if x.high == nil {
			x.high = make(map[uint64]*neededField)
		}
		x.high[number] = f
	}
}

// setNamed sets the required values of the protobuf fields with a name in the message type md.
func (x *index) setNamed(name string, md protoreflect.MessageDescriptor, f *neededField) {
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if string(fd.Name()) == name || fd.JSONName() == name {
			x.setField(uint64(fd.Number()), f)
		}
	}
}

// field returns the required values of the protobuf field with a number, or nil.
func (x *index) field(number uint64) *neededField {
	if number < uint64(len(x.low)) {
		return x.low[number]
	}
	return x.high[number]
}

// excludes reports whether no rule that requires a field, or the end of a stream, can match a message with a codec. end
// means that it ends a stream. false means that the filters must be evaluated.
func (x *index) excludes(codec string, end bool, data []byte) bool {
	if end {
		return !x.matchesEnd
	}
	return x.excludesFields(codec, data)
}

// excludesFields reports whether no rule that requires a field can match a message with a codec. false means that the
// filters must be evaluated.
func (x *index) excludesFields(codec string, data []byte) bool {
	switch {
	case len(x.names) == 0:
		return true
	case codec == "proto":
		return x.excludesProto(data)
	case codec == "json":
		return x.excludesJSON(data)
	}
	return false
}

// excludesProto reports whether no rule can match a protobuf message. false means that the filters must be evaluated.
func (x *index) excludesProto(data []byte) bool {
	for len(data) > 0 {
		// Most tags and lengths have one byte, for which a call would cost more than the rest.
		tag, n := uint64(data[0]), 1
		if tag >= 0x80 {
			tag, n = protowire.ConsumeVarint(data)
		}
		number, typ := tag>>3, wire.Type(tag&7)
		if n < 0 || number == 0 {
			return false
		}
		data = data[n:]
		field := x.field(number)
		if typ != wire.Len {
			if n = excludesNumber(typ, field, data); n < 0 {
				return false
			}
			data = data[n:]
			continue
		}

		if len(data) == 0 {
			return false
		}
		size, n := uint64(data[0]), 1
		if size >= 0x80 {
			size, n = protowire.ConsumeVarint(data)
		}
		if n < 0 || size > uint64(len(data)-n) {
			return false
		}
		end := n + int(size)
		if field != nil && field.mayHaveLength(int(size)) && field.mayBe(data[n:end]) {
			return false
		}
		data = data[end:]
	}
	return true
}

// excludesNumber returns the length of a number of a wire type at the beginning of data, or -1 if the filters must be
// evaluated: if it may be a value that rules require of a field, for groups, and for malformed messages. field is nil if
// rules require nothing.
func excludesNumber(typ wire.Type, field *neededField, data []byte) (n int) {
	var value uint64
	switch typ {
	case wire.Varint:
		value, n = protowire.ConsumeVarint(data)
	case wire.I64:
		value, n = protowire.ConsumeFixed64(data)
	case wire.I32:
		var v uint32
		v, n = protowire.ConsumeFixed32(data)
		value = uint64(v)
	default:
		return -1
	}
	if n < 0 || field != nil && field.mayBeNumber(typ, value) {
		return -1
	}
	return n
}

// mayHaveLength reports whether a length-delimited field value of n bytes may be one that a rule requires. false is
// certain.
func (f *neededField) mayHaveLength(n int) bool {
	return f.any || f.someLengths&(lengthElement(n)|lengthElement(hex.EncodedLen(n))) != 0
}

// mayBe reports whether a length-delimited field value may be one that a rule requires, compared as text and in
// hexadecimal.
func (f *neededField) mayBe(payload []byte) bool {
	if f.any {
		return true
	}
	if f.hasLength(len(payload)) {
		// A conversion in an index expression allocates nothing.
		if _, ok := f.texts[string(payload)]; ok {
			return true
		}
	}
	if !f.hasLength(hex.EncodedLen(len(payload))) {
		return false
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
