package search

import (
	"strconv"

	"unwire/decode/jsontree"
)

// json searches the strings and numbers of a JSON value. enc is the encoding that contained the value, or "".
func (s *searcher) json(v jsontree.Value, enc string) {
	if s.over {
		return
	}
	if s.onValue != nil {
		s.reportValue(Value{JSON: v})
	}
	switch v.Kind() {
	case jsontree.Object, jsontree.Array:
		s.jsonItems(v, enc)
	case jsontree.String:
		s.jsonText(v.Text())
	case jsontree.Number:
		switch text := v.Text(); {
		// A number matches by value, or as text.
		case s.q.Number != nil && s.q.Number.matchesText(text), s.everything():
			s.value("json", text)
		case s.q.Text != nil:
			s.text([]byte(text), "json", false)
		}
	case jsontree.Bool:
		if s.everything() {
			s.value("json", v.Text())
		}
	}
}

// jsonItems searches the members of an object or the elements of an array.
func (s *searcher) jsonItems(v jsontree.Value, enc string) {
	isObject := v.Kind() == jsontree.Object
	i := 0
	for item := range v.Items() {
		name := item.Name()
		if !isObject {
			name = strconv.Itoa(i)
		}
		i++
		s.steps = append(s.steps, step{name: name, enc: enc})
		// Names of members are searched, too.
		if isObject && s.q.Text != nil {
			s.jsonKey(name)
		}
		s.json(item, "")
		s.steps = s.steps[:len(s.steps)-1]
		if s.over {
			return
		}
	}
}

// jsonKey searches the name of a JSON member.
func (s *searcher) jsonKey(name string) {
	if lo, hi, ok := s.q.Text.find([]byte(name), 0); ok {
		s.hit("json", []byte(name), lo, hi, false)
	}
}

// jsonText searches a JSON string, and data encoded in it.
func (s *searcher) jsonText(v string) {
	switch {
	case s.q.Text != nil:
		s.text([]byte(v), "json", true)
	case s.everything():
		s.value("json", v)
	}
	if s.depth() < maxDepth && len(v) > 0 {
		s.inside([]byte(v))
	}
}
