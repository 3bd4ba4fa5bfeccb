package history

import (
	"maps"
	"slices"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/decode/wire"
	"unwire/schema/infer"
)

const (
	// maxDepth is the maximum number of field numbers in a path. Deeper fields are in types that contain
	// themselves.
	maxDepth = 24
	// maxFields is the maximum number of field paths of one version.
	maxFields = 100_000
	// sure is the probability from which on an inferred type counts as known, so that another type is a change.
	sure = 0.9
)

// A field is what was inferred about the field at one path, from the messages of one client version.
type field struct {
	// kind is how the values appear on the wire, such as string or varint.
	kind wire.Kind
	// typ is the inferred type, such as "int32"; "message" for all message types.
	typ string
	// many is set if the field is repeated or a map.
	many bool
	// p is the probability, from 0 to 1, that kind is right.
	p float64
	// typeP is the probability of typ among the types of that kind, from 0 to 1.
	typeP float64
	// seen is the number of messages that contain the field, out of messages.
	seen, messages int64
}

// text returns the field's declaration without its name and number.
func (f field) text() string {
	if f.many {
		return "repeated " + f.typ
	}
	return f.typ
}

// infer infers the definitions of a version from its evidence and sets v.fields.
func (v *version) infer(o Options) (err error) {
	v.fields, err = fieldsOf(v.evidence, o)
	return err
}

// fieldsOf infers definitions from evidence. It returns the fields by their path of numbers, such as "1.2",
// from the type of whole messages.
func fieldsOf(ev *infer.Evidence, o Options) (map[string]field, error) {
	in, err := infer.Infer(ev, infer.Options{Profile: o.Profile})
	if err != nil {
		return nil, err
	}
	w := walk{list: map[string]field{}, decided: map[place]*infer.FieldEvidence{}}
	for i := range in.Fields {
		f := &in.Fields[i]
		w.decided[place{f.Message, f.Number}] = f
	}
	for _, root := range slices.Sorted(maps.Keys(in.Roots)) {
		if md := in.Schema.Message(in.Roots[root]); md != nil && ev.Root(root) != nil {
			w.add(md, "", map[protoreflect.FullName]bool{})
		}
	}
	return w.list, nil
}

// A place identifies an inferred field by its message type and number.
type place struct {
	// message is the full name of the message type.
	message string
	// number is the field number.
	number int32
}

// A walk is the state of listing all fields that are reachable from a message type.
type walk struct {
	// list has the fields found so far, by path.
	list map[string]field
	// decided has the inferred declarations of fields, by message type and number.
	decided map[place]*infer.FieldEvidence
}

// add adds the fields of the message type md, which is at a path, recursively. above are the types of the
// enclosing messages.
func (w *walk) add(md protoreflect.MessageDescriptor, path string, above map[protoreflect.FullName]bool) {
	above[md.FullName()] = true
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		d := w.decided[place{string(md.FullName()), int32(fd.Number())}]
		if d == nil || len(w.list) >= maxFields {
			continue
		}
		at := strconv.Itoa(int(fd.Number()))
		if path != "" {
			at = path + "." + at
		}
		f := field{kind: d.Kind, typ: d.Type, many: infer.IsMany(d.Label), p: d.P, typeP: d.TypeP, seen: d.Seen, messages: d.Samples}
		inner := fd.Message()
		if fd.IsMap() {
			inner = fd.MapValue().Message()
		} else if inner != nil && d.Kind == wire.KindMessage {
			// The names of inferred types depend on the other messages.
			f.typ = "message"
		}
		w.list[at] = f
		if inner == nil || len(above) >= maxDepth {
			continue
		}
		if fd.IsMap() {
			at += ".2"
		}
		// A type that contains itself is followed once.
		if !above[inner.FullName()] {
			w.add(inner, at, above)
		}
	}
	delete(above, md.FullName())
}

// compare returns the differences between the fields of two consecutive versions.
func compare(before, after *version, o Options) ([]Change, error) {
	var list []Change
	var days []dayFields
	for _, path := range slices.SortedFunc(maps.Keys(union(before.fields, after.fields)), comparePaths) {
		old, had := before.fields[path]
		now, has := after.fields[path]
		c := Change{Path: path, From: before.client, To: after.client, FirstSeen: after.first, Seen: now.seen, Messages: now.messages}
		switch {
		case !had:
			c.Change, c.New, c.P = added, now.text(), now.p*now.typeP
		case !has:
			c.Change, c.Old, c.P, c.Seen = notSeen, old.text(), old.p*old.typeP, old.seen
		case old.kind != now.kind:
			c.Change, c.Old, c.New, c.P = retyped, old.text(), now.text(), min(old.p, now.p)
		case old.typ != now.typ && min(old.typeP, now.typeP) >= sure:
			c.Change, c.Old, c.New, c.P = retyped, old.text(), now.text(), min(old.p*old.typeP, now.p*now.typeP)
		case old.many != now.many:
			c.Change, c.Old, c.New, c.P = relabelled, old.text(), now.text(), 1
		default:
			continue
		}
		if c.Change == added {
			// The days are inferred only if something was added.
			if days == nil {
				var err error
				if days, err = after.byDay(o); err != nil {
					return nil, err
				}
			}
			for _, d := range days {
				if _, ok := d.fields[path]; ok {
					c.FirstSeen = d.day
					break
				}
			}
		}
		list = append(list, c)
	}
	return list, nil
}

// union returns the paths that occur in either map.
func union(a, b map[string]field) map[string]bool {
	all := map[string]bool{}
	for path := range a {
		all[path] = true
	}
	for path := range b {
		all[path] = true
	}
	return all
}

// dayFields are the fields inferred from the messages of one day.
type dayFields struct {
	// day is the day in UTC, as 2006-01-02.
	day string
	// fields are the fields by path.
	fields map[string]field
}

// byDay returns the fields of each day on which the version was recorded, in order.
func (v *version) byDay(o Options) ([]dayFields, error) {
	var list []dayFields
	for _, day := range slices.Sorted(maps.Keys(v.days)) {
		fields, err := fieldsOf(v.days[day], o)
		if err != nil {
			return nil, err
		}
		list = append(list, dayFields{day, fields})
	}
	return list, nil
}
