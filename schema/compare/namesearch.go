package compare

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema"
)

// A Hit is an element that a search found.
type Hit struct {
	Element string      `json:"element"`
	Kind    ElementKind `json:"kind"`

	// what it is declared as
	Type  string  `json:"type,omitempty"`
	Score float64 `json:"score"`

	// the line of its comment that has a word
	Comment string `json:"comment,omitempty"`
	File    string `json:"file"`
}

// How much a word says that …
const (
	wholeName   = 10 // is the name
	oneWord     = 6  // is a word of the name
	wordStart   = 4  // begins a word of the name
	partOfName  = 2.5
	oneTypo     = 2
	inComment   = 1.5
	inPath      = 1 // is in the name of what holds the element
	defaultHits = 50
	maxTypoWord = 24
)

// kindWeight puts types before what they hold.
func kindWeight(k ElementKind) float64 {
	switch k {
	case MessageElement, EnumElement, ServiceElement:
		return 1.2
	case MethodElement:
		return 1.15
	}
	return 1
}

// Find searches the names of types, fields, enum values, oneofs, services and
// methods, and their comments where the schema has them. Every word must be found in an element,
// by its name's words, their beginnings, any part of it, or but for one typing
// error; case does not count, and camel case and underscores part words.
//
// Shape: the best first, at most limit (50 if that is 0).
// Limits: time is proportional to the names and comments.
func Find(s *schema.Schema, query string, limit int) []Hit {
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool { return r == ' ' || r == '.' || r == '/' || r == '_' })
	if limit <= 0 {
		limit = defaultHits
	}
	if len(words) == 0 {
		return nil
	}
	q := search{schema: s, words: words, whole: strings.ToLower(strings.TrimSpace(query)), subwords: map[protoreflect.Name][]string{}}
	for _, f := range s.Files {
		for i := range f.Services().Len() {
			sd := f.Services().Get(i)
			q.scoreElement(sd, ServiceElement)
			for j := range sd.Methods().Len() {
				q.scoreElement(sd.Methods().Get(j), MethodElement)
			}
		}
		q.enums(f.Enums())
		schema.EachMessage(f.Messages(), func(m protoreflect.MessageDescriptor) bool {
			q.scoreElement(m, MessageElement)
			for i := range m.Fields().Len() {
				q.scoreElement(m.Fields().Get(i), FieldElement)
			}
			for i := range m.Oneofs().Len() {
				if o := m.Oneofs().Get(i); !o.IsSynthetic() {
					q.scoreElement(o, OneofElement)
				}
			}
			q.enums(m.Enums())
			return true
		})
	}
	slices.SortStableFunc(q.hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(len(a.Element), len(b.Element)), strings.Compare(a.Element, b.Element))
	})
	return q.hits[:min(limit, len(q.hits))]
}

type search struct {
	words    []string
	whole    string
	schema   *schema.Schema
	subwords map[protoreflect.Name][]string // of names, which repeat
	hits     []Hit
}

func (q *search) enums(list protoreflect.EnumDescriptors) {
	for i := range list.Len() {
		e := list.Get(i)
		q.scoreElement(e, EnumElement)
		for j := range e.Values().Len() {
			q.scoreElement(e.Values().Get(j), ValueElement)
		}
	}
}

// scoreElement scores one element, and keeps it if it has all words.
func (q *search) scoreElement(d protoreflect.Descriptor, kind ElementKind) {
	parts, ok := q.subwords[d.Name()]
	if !ok {
		parts = subwords(string(d.Name()))
		q.subwords[d.Name()] = parts
	}
	lower := strings.ToLower(string(d.Name()))
	sum, own := 0.0, false
	comment, looked, line := "", false, ""
	path := ""
	for _, w := range q.words {
		s := nameScore(w, lower, parts)
		if s > 0 {
			own = true
		}
		if s < inComment {
			if !looked {
				comment, looked = strings.ToLower(q.schema.Location(d).LeadingComments), true
			}
			if strings.Contains(comment, w) {
				s, own = inComment, true
				line = lineWith(q.schema.Location(d).LeadingComments, w)
			}
		}
		if s == 0 {
			if path == "" {
				path = strings.ToLower(strings.TrimSuffix(name(d), string(d.Name())))
			}
			if strings.Contains(path, w) {
				s = inPath
			}
		}
		if s == 0 {
			return
		}
		sum += s
	}
	if !own { // of the words, all are in the name of what holds it
		return
	}
	if lower == q.whole || strings.EqualFold(name(d), q.whole) {
		sum += wholeName
	}
	sum *= kindWeight(kind)
	sum /= 1 + 0.02*float64(len(lower))
	q.hits = append(q.hits, Hit{
		Element: name(d), Kind: kind, Type: inShort(d), Score: float64(int(sum*100)) / 100, Comment: line, File: d.ParentFile().Path(),
	})
}

// nameScore is how well a word fits a name, 0 if it does not.
func nameScore(word, lower string, parts []string) float64 {
	if lower == word {
		return wholeName
	}
	best := 0.0
	for _, p := range parts {
		switch {
		case p == word:
			return oneWord
		case strings.HasPrefix(p, word):
			best = max(best, wordStart)
		case len(word) > 3 && isOneTypo(word, p):
			best = max(best, oneTypo)
		}
	}
	if best < partOfName && strings.Contains(lower, word) {
		best = partOfName
	}
	return best
}

// isOneTypo reports whether a and b differ in one letter: another, one more,
// one less, or two exchanged.
func isOneTypo(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 || len(b) > maxTypoWord {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) != len(b) {
		return a[i:] == b[i+1:]
	}
	if i == len(a) {
		return true
	}
	return a[i+1:] == b[i+1:] || i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// lineWith is the first line of a comment that holds a word.
func lineWith(comment, word string) string {
	for line := range strings.Lines(comment) {
		if strings.Contains(strings.ToLower(line), word) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// inShort says shortly what an element is declared as.
func inShort(d protoreflect.Descriptor) string {
	switch d := d.(type) {
	case protoreflect.FieldDescriptor:
		return declaration(d)
	case protoreflect.MethodDescriptor:
		return signature(d)
	case protoreflect.MessageDescriptor:
		return sizeOf(d)
	case protoreflect.EnumDescriptor:
		return enumSize(d)
	case protoreflect.ServiceDescriptor:
		return counted(d.Methods().Len(), "method")
	case protoreflect.EnumValueDescriptor:
		return "= " + digits(protoreflect.FieldNumber(d.Number()))
	}
	return ""
}

// A Listing is a line of a table of contents.
type Listing struct {
	Element string      `json:"element"`
	Kind    ElementKind `json:"kind"`
	Size    int         `json:"size"` // fields, values or methods; 0 of a method
	Type    string      `json:"type,omitempty"`
	File    string      `json:"file"`
}

// Contents lists services with their methods, messages and enums, in the order
// of files and declarations.
func Contents(s *schema.Schema) []Listing {
	var list []Listing
	for sd := range s.Services() {
		list = append(list, Listing{Element: name(sd), Kind: ServiceElement, Size: sd.Methods().Len(), File: sd.ParentFile().Path()})
		for i := range sd.Methods().Len() {
			m := sd.Methods().Get(i)
			list = append(list, Listing{Element: name(m), Kind: MethodElement, Type: signature(m), File: sd.ParentFile().Path()})
		}
	}
	for m := range s.Messages() {
		list = append(list, Listing{Element: name(m), Kind: MessageElement, Size: m.Fields().Len(), File: m.ParentFile().Path()})
	}
	for e := range s.Enums() {
		list = append(list, Listing{Element: name(e), Kind: EnumElement, Size: e.Values().Len(), File: e.ParentFile().Path()})
	}
	return list
}
