package compare

import (
	"cmp"
	"iter"
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
	free := indexServices(after, taken)
	for _, s := range left {
		for now := range free.candidates(s) {
			t.work += s.Methods().Len() + now.Methods().Len()
			l := serviceLikeness(s, now)
			if l >= minServiceLikeness || s.Name() == now.Name() {
				list = append(list, likely{s, now, l})
			}
		}
		if t.work > maxWork {
			break
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

// A serviceIndex finds services by their name and by the names of their methods.
type serviceIndex map[protoreflect.Name][]protoreflect.ServiceDescriptor

// indexServices returns the services of a version that are not taken, under their simple name and the names
// of their methods.
func indexServices(version *schema.Schema, taken map[protoreflect.FullName]bool) serviceIndex {
	index := serviceIndex{}
	for s := range version.Services() {
		if taken[s.FullName()] {
			continue
		}
		index[s.Name()] = append(index[s.Name()], s)
		for i := range s.Methods().Len() {
			m := s.Methods().Get(i).Name()
			index[m] = append(index[m], s)
		}
	}
	return index
}

// candidates yields, once each, the services of the index that have the name of s or a method name in common
// with it. Names that more than maxSharing services have are ignored.
func (index serviceIndex) candidates(s protoreflect.ServiceDescriptor) iter.Seq[protoreflect.ServiceDescriptor] {
	return func(yield func(protoreflect.ServiceDescriptor) bool) {
		names := []protoreflect.Name{s.Name()}
		for i := range s.Methods().Len() {
			names = append(names, s.Methods().Get(i).Name())
		}
		seen := map[protoreflect.FullName]bool{}
		for _, n := range names {
			if len(index[n]) > maxSharing {
				continue
			}
			for _, other := range index[n] {
				if !seen[other.FullName()] && !yield(other) {
					return
				}
				seen[other.FullName()] = true
			}
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

	// The others by their types.
	renamed := map[methodTypes]*renamedMethods{}
	groupOf := func(types methodTypes) *renamedMethods {
		if renamed[types] == nil {
			renamed[types] = &renamedMethods{}
		}
		return renamed[types]
	}
	for i := range before.Methods().Len() {
		m := before.Methods().Get(i)
		g := groupOf(d.newTypes(m))
		if g.old++; mates[m] == nil {
			g.removed = append(g.removed, m)
		}
	}
	for i := range after.Methods().Len() {
		m := after.Methods().Get(i)
		g := groupOf(typesOf(m, m.Input().FullName(), m.Output().FullName()))
		if g.now++; !taken[m.Name()] {
			g.added = append(g.added, m)
		}
	}
	for _, g := range renamed {
		g.pair(mates)
	}
	return mates
}

// methodTypes are the types of a method. Messages have their names of the new version.
type methodTypes struct {
	// input and output are the messages.
	input, output protoreflect.FullName

	// clientStreams and serverStreams mean that the client or the server sends a stream of messages.
	clientStreams, serverStreams bool
}

// typesOf returns the types of m with the given names of its messages.
func typesOf(m protoreflect.MethodDescriptor, input, output protoreflect.FullName) methodTypes {
	return methodTypes{input, output, m.IsStreamingClient(), m.IsStreamingServer()}
}

// newTypes returns the types that the old method m has in the new version.
func (d *differ) newTypes(m protoreflect.MethodDescriptor) methodTypes {
	return typesOf(m, d.types.newName(m.Input()), d.types.newName(m.Output()))
}

// renamedMethods are the methods of a service with the same types, of which some may have been renamed.
type renamedMethods struct {
	// old and now count the methods with these types in the old and in the new version.
	old, now int

	// removed are the methods whose name is only in the old version.
	removed []protoreflect.MethodDescriptor

	// added are the methods whose name is only in the new version.
	added []protoreflect.MethodDescriptor
}

// maxRenamed limits the pairs of names that are compared to find renamed methods with the same types. With
// more, they count as removed and added: their types say nothing, and the time would be quadratic.
const maxRenamed = 4096

// pair adds to mates each removed method with the added method that it became. If several methods have these
// types, the names must be similar; a method is paired with the most similar one only.
func (g *renamedMethods) pair(mates map[protoreflect.MethodDescriptor]protoreflect.MethodDescriptor) {
	if len(g.removed)*len(g.added) > maxRenamed {
		return
	}
	taken := map[protoreflect.MethodDescriptor]bool{}
	for _, m := range g.removed {
		var best protoreflect.MethodDescriptor
		like := -1.0
		for _, now := range g.added {
			if l := nameLikeness(string(m.Name()), string(now.Name())); l > like {
				best, like = now, l
			}
		}
		unique := g.old == 1 && g.now == 1
		if best != nil && !taken[best] && (unique || like >= minFieldLikeness) {
			mates[m] = best
			taken[best] = true
		}
	}
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
