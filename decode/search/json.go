package search

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// json looks at the strings and numbers of a JSON document.
func (s *searcher) json(data []byte, enc string) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	s.jsonValue(dec, enc)
}

func (s *searcher) jsonValue(dec *json.Decoder, enc string) bool {
	tok, err := dec.Token()
	if err != nil || s.over {
		return false
	}
	switch v := tok.(type) {
	case json.Delim:
		for i := 0; dec.More(); i++ {
			name := strconv.Itoa(i)
			if v == '{' {
				key, err := dec.Token()
				if err != nil {
					return false
				}
				name, _ = key.(string)
			}
			s.steps = append(s.steps, step{name: name, enc: enc})
			if v == '{' && s.q.Text != nil {
				s.jsonKey(name)
			}
			ok := s.jsonValue(dec, "")
			s.steps = s.steps[:len(s.steps)-1]
			if !ok {
				return false
			}
		}
		_, err := dec.Token()
		return err == nil
	case string:
		s.jsonText(v)
	case json.Number:
		switch {
		case s.q.Number != nil && s.q.Number.matchesText(v.String()), s.everything():
			s.value("json", v.String())
		case s.q.Text != nil:
			s.text([]byte(v.String()), "json", false)
		}
	case bool:
		if s.everything() {
			s.value("json", strconv.FormatBool(v))
		}
	}
	return true
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
