package transcript

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/jsontree"
	"unwire/decode/transcript/language"
)

const (
	// maxCarriers is the maximum number of paths that are examined for JSON in strings.
	maxCarriers = 100

	// leastCarried is the minimum number of values at a path that carries events as JSON in strings.
	leastCarried = 4

	// carriedShare is the minimum share of such a path's values that are JSON objects.
	carriedShare = 0.9

	// carriedOpen is the minimum share of the borders between the texts of a member that are in the middle of a
	// sentence, if the texts are deltas.
	carriedOpen = 0.4

	// carriedSpaced is the minimum share of these borders that have a space.
	carriedSpaced = 0.25

	// maxMembers is the maximum number of members of an object that carries an event.
	maxMembers = 12

	// mostCarried is the maximum average size in bytes of an object that carries an event.
	mostCarried = 4096
)

// unpackEvents finds events that are sent as JSON inside a string: the objects at a path have a member whose texts
// continue from one object to the next. (The arguments of tool calls have no such member.) The texts of these
// objects' members then replace the string in the collection. A path whose objects have a member of the same name
// is replaced too.
func (c *collection) unpackEvents(ex *decode.Exchange) {
	// Collect the names of the members of all objects that carry deltas.
	names := make(map[string]bool)
	objects := make(map[*stream][]jsonObject)
	for _, s := range c.streams {
		list := s.objects()
		if list == nil || len(objects) >= maxCarriers {
			continue
		}
		objects[s] = list
		if carriesDeltas(list) {
			for name := range list[0] {
				names[name] = true
			}
		}
	}
	// If both sides send objects with the same members, these are events too: arguments
	// are sent by one side only.
	for a, x := range objects {
		for b, y := range objects {
			if a.dir == captures.Up && b.dir == captures.Down && len(x[0]) > 1 && (sameNames(x[0], y[0]) || holdsObject(x[0]) && holdsObject(y[0]) && sharesMember(x[0], y[0])) {
				for name := range x[0] {
					names[name] = true
				}
			}
		}
	}
	if len(names) == 0 {
		return
	}

	// Remove the string streams, then add the members of their objects as new streams.
	c.streams = slices.DeleteFunc(c.streams, func(s *stream) bool {
		list := objects[s]
		return list != nil && sharesName(list[0], names)
	})
	kept := make(map[streamKey]*stream, len(c.streams))
	for _, s := range c.streams {
		kept[streamKey{s.dir, s.path}] = s
	}
	all := c.index
	c.index = kept
	for s, list := range sortedObjects(all, objects) {
		if !sharesName(list[0], names) {
			continue
		}
		for i, p := range s.pieces {
			if i < len(list) {
				c.addValue(&ex.Frames[p.frame], p.frame, strings.Split(s.path, "."), jsonValue{opened: list[i]}, c.newGroup(p.group))
			}
		}
	}
}

// sortedObjects yields the streams ordered by first frame and path, so that results do
// not depend on map order.
func sortedObjects(index map[streamKey]*stream, objects map[*stream][]jsonObject) func(func(*stream, []jsonObject) bool) {
	list := make([]*stream, 0, len(objects))
	for _, s := range index {
		if objects[s] != nil {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *stream) int {
		if a.pieces[0].frame != b.pieces[0].frame {
			return a.pieces[0].frame - b.pieces[0].frame
		}
		return strings.Compare(a.path, b.path)
	})
	return func(yield func(*stream, []jsonObject) bool) {
		for _, s := range list {
			if !yield(s, objects[s]) {
				return
			}
		}
	}
}

// sameNames reports whether a and b have the same member names.
func sameNames(a, b jsonObject) bool {
	for name := range a {
		if _, ok := b[name]; !ok {
			return false
		}
	}
	return len(a) == len(b)
}

// holdsObject reports whether a member of o is an object, including objects that were parsed from strings.
func holdsObject(o jsonObject) bool {
	for _, v := range o {
		if v.Kind() == jsontree.Object {
			return true
		}
	}
	return false
}

// sharesMember reports whether a and b have a member name in common.
func sharesMember(a, b jsonObject) bool {
	for name := range a {
		if _, ok := b[name]; ok {
			return true
		}
	}
	return false
}

// sharesName reports whether the name of a member of o is in names.
func sharesName(o jsonObject, names map[string]bool) bool {
	for name := range o {
		if names[name] {
			return true
		}
	}
	return false
}

// objects returns the values of s as JSON objects, or nil if most of them are not
// objects. A single value that is not an object becomes an empty object.
func (s *stream) objects() []jsonObject {
	if s.stored || len(s.pieces) == 0 || s.bytes > mostCarried*len(s.pieces) || !strings.HasPrefix(strings.TrimSpace(s.pieces[0].text), "{") {
		return nil
	}
	out := make([]jsonObject, 0, len(s.pieces))
	for i, p := range s.pieces {
		o, ok := parseObject([]byte(strings.TrimSpace(p.text)))
		if !ok || len(o) == 0 || len(o) > maxMembers {
			if float64(len(out)) < carriedShare*float64(i+1)-1 {
				return nil
			}
			// A few values may be damaged.
			o = jsonObject{}
		}
		out = append(out, o)
	}
	if len(out[0]) == 0 {
		return nil
	}
	openMembers(out, 0)
	return out
}

// mostNested is the maximum depth of JSON strings inside JSON strings that are parsed.
const mostNested = 3

// openMembers parses those members of the objects that contain a JSON object as a string in all objects of the
// list. Arguments of a call are in some of the objects only, so they stay strings.
func openMembers(list []jsonObject, depth int) {
	if depth >= mostNested || len(list) == 0 {
		return
	}
	for name, v := range list[0] {
		if s, ok := v.string(); !ok || !strings.HasPrefix(s, "{") {
			continue
		}
		inner := make([]jsonObject, 0, len(list))
		for _, o := range list {
			s, _ := o[name].string()
			m, ok := parseObject([]byte(s))
			if !ok || len(m) == 0 || len(m) > maxMembers {
				break
			}
			inner = append(inner, m)
		}

		if len(inner) < len(list) {
			continue
		}
		for i, o := range list {
			o[name] = jsonValue{opened: inner[i]}
		}
		openMembers(inner, depth+1)
	}
}

// carriesDeltas reports whether the texts of one member of the objects, or of objects inside them, are deltas: each
// continues the previous one.
func carriesDeltas(list []jsonObject) bool {
	if len(list) < leastCarried {
		return false
	}
	texts := make(map[string][]textPiece)
	for i, o := range list {
		memberTexts(texts, "", o, i, 0)
	}
	for _, pieces := range texts {
		if len(pieces) < leastCarried {
			continue
		}
		// Queries and names sometimes look like deltas, but have no spaces at the
		// borders.
		spaced := spacedBorders(pieces)
		if open, _ := borders(pieces); open >= carriedOpen && (spaced >= carriedSpaced || isDense(pieces)) && len(unique(pieces))*2 >= leastCarried && !areSeparate(pieces) && hasLanguage(pieces) {
			return true
		}
	}
	return false
}

// spacedBorders returns the share of borders between pieces that have a space on either side.
func spacedBorders(pieces []textPiece) float64 {
	n := 0
	for i := 1; i < len(pieces); i++ {
		before, _ := utf8.DecodeLastRuneInString(pieces[i-1].text)
		after, _ := utf8.DecodeRuneInString(pieces[i].text)
		if unicode.IsSpace(before) || unicode.IsSpace(after) {
			n++
		}
	}
	return float64(n) / float64(len(pieces)-1)
}

// memberTexts appends the texts of the members of o to texts, by path. at is the index of the object in its list,
// and depth the nesting of o.
func memberTexts(texts map[string][]textPiece, path string, o jsonObject, at, depth int) {
	for name, v := range o {
		switch v.Kind() {
		case jsontree.String:
			if text := v.Text(); text != "" {
				key := path + "." + name
				texts[key] = append(texts[key], textPiece{frame: at, text: text})
			}
		case jsontree.Object:
			if depth < 3 {
				memberTexts(texts, path+"."+name, v.members(), at, depth+1)
			}
		}
	}
}

// hasLanguage reports whether the joined pieces are natural language. Identifiers and names of kinds can look like
// deltas, too.
func hasLanguage(pieces []textPiece) bool {
	text := language.Sample(concat(pieces[:min(len(pieces), 200)], ""))
	return language.Likeness(text) >= 0.3 || language.MarkdownLike(text) > 0.6
}
