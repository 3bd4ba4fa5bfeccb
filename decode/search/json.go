package search

import (
	"strconv"

	"unwire/decode/jsontree"
)

// json looks at the strings and numbers of a JSON value.
func (s *searcher) json(v jsontree.Value, enc string) {
	if s.over {
		return
	}
	if s.onValue != nil {
		s.onValue(Value{JSON: v})
	}
	switch v.Kind() {
	case jsontree.Object, jsontree.Array:
		s.jsonItems(v, enc)
	case jsontree.String:
		s.jsonText(v.Text())
	case jsontree.Number:
		switch text := v.Text(); {
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

// jsonItems looks at the members of an object or the elements of an array.
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

// jsonKey finds text in the name of a member.
func (s *searcher) jsonKey(name string) {
	if lo, hi, ok := s.q.Text.find([]byte(name), 0); ok {
		s.hit("json", []byte(name), lo, hi, false)
	}
}

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
