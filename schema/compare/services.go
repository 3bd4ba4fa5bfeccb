package compare

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema"
)

// minServiceLikeness is the minimum share of common methods, from 0 to 1, of two services with different names
// that count as one renamed service.
const minServiceLikeness = 0.5

// matchServices pairs services with the same name, and then the remaining ones by the names of their
// methods.
func (t *typeMatch) matchServices(before, after *schema.Schema) {
	taken := map[protoreflect.FullName]bool{}
	var left []protoreflect.ServiceDescriptor
	t.oldServices = slices.Collect(before.Services())
	for s := range before.Services() {
		if now := after.Service(name(s)); now != nil {
			t.services[s.FullName()] = now
			taken[now.FullName()] = true
		} else {
			left = append(left, s)
		}
	}

	// Renamed services: the best pair first, each service once.
	type likely struct {
		a, b protoreflect.ServiceDescriptor
		like float64
	}
	var list []likely
	for _, s := range left {
		for now := range after.Services() {
			if taken[now.FullName()] {
				continue
			}
			l := serviceLikeness(s, now)
			if l >= minServiceLikeness || s.Name() == now.Name() {
				list = append(list, likely{s, now, l})
			}
		}
	}

	slices.SortStableFunc(list, func(x, y likely) int {
		return cmp.Or(cmp.Compare(y.like, x.like), strings.Compare(name(x.a), name(y.a)), strings.Compare(name(x.b), name(y.b)))
	})
	for _, l := range list {
		if t.services[l.a.FullName()] == nil && !taken[l.b.FullName()] {
			t.services[l.a.FullName()] = l.b
			taken[l.b.FullName()] = true
		}
	}
}

// serviceLikeness returns the similarity of two services, from 0 to 1, by the names of their methods (Dice
// coefficient).
func serviceLikeness(a, b protoreflect.ServiceDescriptor) float64 {
	shared := 0
	others := byName(b.Methods())
	for i := range a.Methods().Len() {
		if others[a.Methods().Get(i).Name()] != nil {
			shared++
		}
	}
	if a.Methods().Len()+b.Methods().Len() == 0 {
		return 0
	}
	return 2 * float64(shared) / float64(a.Methods().Len()+b.Methods().Len())
}

// eachMethod calls do for each method m of an old service and the method now with the same name in the new
// version of the service.
func (t *typeMatch) eachMethod(do func(m, now protoreflect.MethodDescriptor)) {
	for _, s := range t.oldServices {
		after := t.services[s.FullName()]
		if after == nil {
			continue
		}
		methods := byName(after.Methods())
		for i := range s.Methods().Len() {
			m := s.Methods().Get(i)
			if now := methods[m.Name()]; now != nil {
				do(m, now)
			}
		}
	}
}

// matchMethods maps each method of before to its counterpart in after, if it has one: the method with the same
// name, or else with the same types.
func (d *differ) matchMethods(before, after protoreflect.ServiceDescriptor) map[protoreflect.MethodDescriptor]protoreflect.MethodDescriptor {
	mates := map[protoreflect.MethodDescriptor]protoreflect.MethodDescriptor{}
	// Names first, so that a method which kept its name is never taken for a renamed one.
	taken := map[protoreflect.Name]bool{}
	methods := byName(after.Methods())
	for i := range before.Methods().Len() {
		m := before.Methods().Get(i)
		if now := methods[m.Name()]; now != nil {
			mates[m] = now
			taken[now.Name()] = true
		}
	}

	for i := range before.Methods().Len() {
		m := before.Methods().Get(i)
		if mates[m] != nil {
			continue
		}
		if now := d.renamedMethod(m, before, after); now != nil && !taken[now.Name()] {
			mates[m] = now
			taken[now.Name()] = true
		}
	}
	return mates
}

// renamedMethod returns the method of after that has the types of m and a new name, or nil. If several methods
// have these types, the names must be similar.
func (d *differ) renamedMethod(m protoreflect.MethodDescriptor, before, after protoreflect.ServiceDescriptor) protoreflect.MethodDescriptor {
	// rivals counts the old methods with these types, and same the new ones.
	rivals := 0
	for i := range before.Methods().Len() {
		if n := before.Methods().Get(i); n.Input() == m.Input() && n.Output() == m.Output() {
			rivals++
		}
	}

	var found protoreflect.MethodDescriptor
	same := 0
	for i := range after.Methods().Len() {
		now := after.Methods().Get(i)
		if streaming(m) != streaming(now) || !d.types.isSameMessage(m.Input(), now.Input()) || !d.types.isSameMessage(m.Output(), now.Output()) {
			continue
		}
		same++
		if before.Methods().ByName(now.Name()) != nil {
			continue
		}
		if found == nil || nameLikeness(string(m.Name()), string(now.Name())) > nameLikeness(string(m.Name()), string(found.Name())) {
			found = now
		}
	}

	// The types are not unique, so they are no evidence by themselves.
	if found != nil && (rivals > 1 || same > 1) && nameLikeness(string(m.Name()), string(found.Name())) < minFieldLikeness {
		return nil
	}
	return found
}

// services compares the services of both versions and adds the changes.
func (d *differ) services(before, after *schema.Schema) {
	taken := map[protoreflect.FullName]bool{}
	for s := range before.Services() {
		now := d.types.services[s.FullName()]
		if now == nil {
			d.addChange(Change{Change: Removed, Kind: ServiceElement, Element: name(s), Old: counted(s.Methods().Len(), "method"), Breaks: BreaksWire})
			continue
		}
		taken[now.FullName()] = true
		d.typeRenamed(ServiceElement, s, now, BreaksWire)
		d.methods(s, now)
	}

	for s := range after.Services() {
		if taken[s.FullName()] {
			continue
		}
		d.addChange(Change{Change: Added, Kind: ServiceElement, Element: name(s), New: counted(s.Methods().Len(), "method")})
		for i := range s.Methods().Len() {
			m := s.Methods().Get(i)
			d.addChange(Change{Change: Added, Kind: MethodElement, Element: name(m), New: signature(m)})
		}
	}
}

// methods compares the methods of both versions of a service and adds the changes.
func (d *differ) methods(before, after protoreflect.ServiceDescriptor) {
	mates := d.matchMethods(before, after)
	taken := map[protoreflect.MethodDescriptor]bool{}
	for i := range before.Methods().Len() {
		m := before.Methods().Get(i)
		now := mates[m]
		if now == nil {
			d.addChange(Change{Change: Removed, Kind: MethodElement, Element: name(m), Old: signature(m), Breaks: BreaksWire})
			continue
		}
		taken[now] = true
		d.method(m, now)
	}

	for i := range after.Methods().Len() {
		if m := after.Methods().Get(i); !taken[m] {
			d.addChange(Change{Change: Added, Kind: MethodElement, Element: name(m), New: signature(m)})
		}
	}
}

// method compares the old version m of a method with the new version now and adds the changes.
func (d *differ) method(m, now protoreflect.MethodDescriptor) {
	at := func(c Change) { c.Kind, c.Element = MethodElement, name(m); d.addChange(rename(c, now)) }
	if m.Name() != now.Name() {
		at(Change{Change: renamed, Old: string(m.Name()), New: string(now.Name()), Breaks: BreaksWire})
	}
	// The request and response types.
	for _, side := range []struct {
		word string
		a, b protoreflect.MessageDescriptor
	}{{"request", m.Input(), now.Input()}, {"response", m.Output(), now.Output()}} {
		if !d.types.isSameMessage(side.a, side.b) {
			worst, note := d.compat.message(side.a, side.b)
			at(Change{Change: retyped, Old: name(side.a), New: name(side.b), Breaks: worst, Note: side.word + ": " + note})
		}
	}
	if was, is := streaming(m), streaming(now); was != is {
		at(Change{Change: relabelled, Old: was, New: is, Breaks: BreaksWire})
	}
}
