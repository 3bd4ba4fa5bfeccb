package search

import (
	"strconv"

	"unwire/decode/jsontree"
)

// searchJSON searches the strings and numbers of a JSON value. enc is the encoding that contained the value, or "".
func (s *searcher) searchJSON(v jsontree.Value, enc string) {
	if s.over {
		return
	}
	if s.onValue != nil {
		s.reportValue(Value{JSON: v})
	}
	switch v.Kind() {
	case jsontree.Object, jsontree.Array:
		s.searchJSONItems(v, enc)
	case jsontree.String:
		s.searchJSONText(v.Text())
	case jsontree.Number:
		switch text := v.Text(); {
		// A number matches by value, or as text.
		case s.q.Number != nil && s.q.Number.matchesText(text), s.matchesAnyValue():
			s.reportWhole("json", text)
		case s.q.Text != nil:
			s.searchText([]byte(text), "json", false)
		}
	case jsontree.Bool:
		if s.matchesAnyValue() {
			s.reportWhole("json", v.Text())
		}
	}
}

// searchJSONItems searches the members of an object or the elements of an array.
func (s *searcher) searchJSONItems(v jsontree.Value, enc string) {
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
			s.searchJSONKey(name)
		}
		s.searchJSON(item, "")
		s.steps = s.steps[:len(s.steps)-1]
		if s.over {
			return
		}
	}
}

// searchJSONKey searches the name of a JSON member.
func (s *searcher) searchJSONKey(name string) {
	if lo, hi, ok := s.q.Text.find([]byte(name), 0); ok {
		s.reportExcerpt("json", []byte(name), lo, hi, false)
	}
}

// searchJSONText searches a JSON string, and data that is encoded in it, such as base64.
func (s *searcher) searchJSONText(v string) {
	switch {
	case s.q.Text != nil:
		s.searchText([]byte(v), "json", true)
	case s.matchesAnyValue():
		s.reportWhole("json", v)
	}
	if s.encodingDepth() < maxDepth && len(v) > 0 {
		s.searchInside([]byte(v))
	}
}
