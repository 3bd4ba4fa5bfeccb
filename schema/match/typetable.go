package match

import (
	"cmp"
	"math"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
	"unwire/schema/check"
)

// A messageType is a message type in a form that allows fast scoring.
type messageType struct {
	// name is the full name of the message type.
	name string
	// entry is set if the type is the entry type of a map.
	entry bool
	// fields maps numbers to the declared fields.
	fields map[int32]*field
	// low has the fields with small numbers, by number, for speed.
	low [32]*field
	// slots is the number of independent choices of presence: each field outside of oneofs, and each oneof.
	slots int
	// required are the numbers of the required fields.
	required []int32
}

// get returns the declared field with the given number, or nil.
func (ty *messageType) get(number int32) *field {
	if number < int32(len(ty.low)) {
		return ty.low[number]
	}
	return ty.fields[number]
}

// A field is a declared field in a form that allows fast scoring.
type field struct {
	// name is the name of the declared field.
	name string
	// kind is the declared type of the field.
	kind protoreflect.Kind
	// wire is the wire type of a single value of the field.
	wire wire.Type
	// list is set if the field is repeated or a map.
	list bool
	// packable is set if the field's elements may be packed.
	packable bool
	// implicit is set if writers omit the default value (no explicit presence).
	implicit bool
	// oneof is the index of the oneof that contains the field, from 1 on; 0 if there is none.
	oneof int
	// choice is the description length, in bits, of which member of the oneof is set.
	choice float64
	// slot is the index of the field's choice of presence (see messageType.slots). Members of a oneof share
	// one.
	slot int
	// names has the numbers of the values that the field's enum defines.
	names map[int32]bool
	// child is the field's message type; nil for other fields.
	child *messageType
}

// A typeTable maps descriptors of message types to the prepared types while these are collected.
type typeTable map[protoreflect.MessageDescriptor]*messageType

// addType adds a message type and all types that its fields refer to. It uses a loop instead of recursion,
// because chains of types can be as long as the definitions.
func (all typeTable) addType(md protoreflect.MessageDescriptor) {
	if all[md] != nil {
		return
	}
	todo := []protoreflect.MessageDescriptor{md}
	all[md] = &messageType{}
	for len(todo) > 0 {
		md, todo = todo[len(todo)-1], todo[:len(todo)-1]
		all.fill(md, func(below protoreflect.MessageDescriptor) {
			all[below] = &messageType{}
			todo = append(todo, below)
		})
	}
}

// fill fills in the prepared form of md, which is in the table. It calls more for each type of a field that is
// not yet in the table.
func (all typeTable) fill(md protoreflect.MessageDescriptor, more func(protoreflect.MessageDescriptor)) {
	ty := all[md]
	ty.name, ty.entry, ty.fields = string(md.FullName()), md.IsMapEntry(), make(map[int32]*field, md.Fields().Len())
	oneofs := map[int]int{}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		f := &field{name: string(fd.Name()), kind: fd.Kind(), list: fd.IsList() || fd.IsMap(), implicit: !fd.HasPresence() && !fd.IsList() && !fd.IsMap() && !ty.entry, slot: ty.slots}
		f.wire = check.WireTypeOf(fd.Kind())

		// proto3 packs repeated numbers, and readers must accept both forms.
		f.packable = check.Packable(fd)

		// All members of a oneof share one slot.
		if o := fd.ContainingOneof(); o != nil && !o.IsSynthetic() {
			f.oneof = o.Index() + 1
			f.choice = math.Log2(float64(o.Fields().Len()))
			slot, ok := oneofs[f.oneof]
			if !ok {
				slot = ty.slots
				oneofs[f.oneof] = slot
				ty.slots++
			}
			f.slot = slot
		} else {
			ty.slots++
		}

		if fd.Cardinality() == protoreflect.Required {
			ty.required = append(ty.required, int32(fd.Number()))
		}
		if e := fd.Enum(); e != nil {
			f.names = make(map[int32]bool, e.Values().Len())
			for i := range e.Values().Len() {
				f.names[int32(e.Values().Get(i).Number())] = true
			}
		}

		if below := fd.Message(); below != nil {
			if all[below] == nil {
				more(below)
			}
			f.child = all[below]
		}

		// Low numbers are the frequent ones, so an array makes them fast.
		ty.fields[int32(fd.Number())] = f
		if n := fd.Number(); int(n) < len(ty.low) {
			ty.low[n] = f
		}
	}
}

// sorted returns the prepared types sorted by name.
func (all typeTable) sorted() []*messageType {
	list := make([]*messageType, 0, len(all))
	for _, ty := range all {
		list = append(list, ty)
	}
	slices.SortFunc(list, func(a, b *messageType) int { return cmp.Compare(a.name, b.name) })
	return list
}
