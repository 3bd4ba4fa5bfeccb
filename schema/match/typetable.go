package match

import (
	"cmp"
	"math"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
	"unwire/schema/check"
)

// A typ is a message type as it is looked up while scoring.
type typ struct {
	name     string
	entry    bool // of a map
	fields   map[int32]*field
	low      [32]*field // the same, of the small numbers
	slots    int        // fields outside oneofs, and oneofs
	required []int32
}

func (ty *typ) get(number int32) *field {
	if number < int32(len(ty.low)) {
		return ty.low[number]
	}
	return ty.fields[number]
}

// A field is a declared field.
type field struct {
	name     string
	kind     protoreflect.Kind
	wire     wire.Type
	list     bool // or map
	packable bool
	implicit bool // a default value is not written
	oneof    int  // from 1; 0 for none
	choice   float64
	slot     int
	names    map[int32]bool // of an enum
	below    *typ
}

// typeTable holds the types by descriptor while they are collected.
type typeTable map[protoreflect.MessageDescriptor]*typ

// addType enters a type with all that its fields refer to. It is a loop: chains of
// types can be as long as definitions are.
func (all typeTable) addType(md protoreflect.MessageDescriptor) {
	if all[md] != nil {
		return
	}
	todo := []protoreflect.MessageDescriptor{md}
	all[md] = &typ{}
	for len(todo) > 0 {
		md, todo = todo[len(todo)-1], todo[:len(todo)-1]
		all.fill(md, func(below protoreflect.MessageDescriptor) {
			all[below] = &typ{}
			todo = append(todo, below)
		})
	}
}

func (all typeTable) fill(md protoreflect.MessageDescriptor, more func(protoreflect.MessageDescriptor)) {
	ty := all[md]
	ty.name, ty.entry, ty.fields = string(md.FullName()), md.IsMapEntry(), make(map[int32]*field, md.Fields().Len())
	oneofs := map[int]int{}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		f := &field{name: string(fd.Name()), kind: fd.Kind(), list: fd.IsList() || fd.IsMap(), implicit: !fd.HasPresence() && !fd.IsList() && !fd.IsMap() && !ty.entry, slot: ty.slots}
		f.wire = check.WireOf(fd.Kind())
		f.packable = check.Packable(fd)
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
			f.below = all[below]
		}
		ty.fields[int32(fd.Number())] = f
		if n := fd.Number(); int(n) < len(ty.low) {
			ty.low[n] = f
		}
	}
}

func (all typeTable) sorted() []*typ {
	list := make([]*typ, 0, len(all))
	for _, ty := range all {
		list = append(list, ty)
	}
	slices.SortFunc(list, func(a, b *typ) int { return cmp.Compare(a.name, b.name) })
	return list
}
