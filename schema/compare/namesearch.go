package compare

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/schema"
)

// A Hit is an element of the definitions that Find found.
type Hit struct {
	// Element is the full name of the found element.
	Element string `json:"element"`
	// Kind is the kind of the found element.
	Kind ElementKind `json:"kind"`

	// Type is the element's type or signature, or its size.
	Type string `json:"type,omitempty"`
	// Score is the relevance of the hit; only the order of scores matters.
	Score float64 `json:"score"`

	// Comment is the first line of the element's comment that contains a searched word, or "".
	Comment string `json:"comment,omitempty"`
	// File is the path of the file that declares the element.
	File string `json:"file"`
}

// Scores for one searched word, depending on where the element contains it. Higher is better.
const (
	// wholeName is the score if the word is the whole name.
	wholeName = 10
	// oneWord is the score if the word is one of the words of the name.
	oneWord = 6
	// wordStart is the score if the word is the beginning of a word of the name.
	wordStart = 4
	// partOfName is the score if the word is any other part of the name.
	partOfName = 2.5
	// oneTypo is the score if the word is a word of the name with one typing error.
	oneTypo = 2
	// inComment is the score if the word occurs in the comment.
	inComment = 1.5
	// inPath is the score if the word is part of the name of an enclosing element.
	inPath = 1
	// defaultHits is the default maximum number of results of Find.
	defaultHits = 50
	// maxTypoWord is the length in bytes above which typing errors are not considered.
	maxTypoWord = 24
)

// kindWeight returns the factor for the score of elements of a kind: types come before their fields.
func kindWeight(k ElementKind) float64 {
	switch k {
	case MessageElement, EnumElement, ServiceElement:
		return 1.2
	case MethodElement:
		return 1.15
	}
	return 1
}

// Find searches the names and comments of types, fields, enum values, oneofs, services and methods. An element
// must contain every word of the query: as a word of its name, as the beginning or another part of one, with one
// typing error, or in its comment. Case is ignored; camel case and underscores separate words.
//
// Shape: best results first, at most limit; 0 means 50.
// Limits: the time is proportional to the names and comments.
func Find(s *schema.Schema, query string, limit int) []Hit {
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool { return r == ' ' || r == '.' || r == '/' || r == '_' })
	if limit <= 0 {
		limit = defaultHits
	}
	if len(words) == 0 {
		return nil
	}

	// Every element is scored: definitions are small enough, and an index would have to be kept up to date.
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

	// Equal scores are ordered by length and name, so that the result does not depend on the order of files.
	slices.SortStableFunc(q.hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(len(a.Element), len(b.Element)), strings.Compare(a.Element, b.Element))
	})
	return q.hits[:min(limit, len(q.hits))]
}

// A search is the state of one call of Find.
type search struct {
	// words are the words of the query in lower case.
	words []string
	// whole is the whole query in lower case.
	whole string
	// schema has the definitions that are searched.
	schema *schema.Schema
	// subwords caches how names are split into words, because many fields have the same name.
	subwords map[protoreflect.Name][]string
	// hits are the results found so far.
	hits []Hit
}

// enums adds the enums in list, and their values, to the hits if they contain all words of the query.
func (q *search) enums(list protoreflect.EnumDescriptors) {
	for i := range list.Len() {
		e := list.Get(i)
		q.scoreElement(e, EnumElement)
		for j := range e.Values().Len() {
			q.scoreElement(e.Values().Get(j), ValueElement)
		}
	}
}

// scoreElement adds an element to the hits, with its score, if it contains all words of the query.
func (q *search) scoreElement(d protoreflect.Descriptor, kind ElementKind) {
	parts, ok := q.subwords[d.Name()]
	if !ok {
		parts = subwords(string(d.Name()))
		q.subwords[d.Name()] = parts
	}
	lower := strings.ToLower(string(d.Name()))

	// own is set if a word is in the element itself rather than in the name of an enclosing one.
	sum, own := 0.0, false
	comment, looked, line := "", false, ""
	path := ""
	for _, w := range q.words {
		s := nameScore(w, lower, parts)
		if s > 0 {
			own = true
		}
		// Comments are costly to find, so they are searched only if they can improve the score.
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

	// All words are in the name of the enclosing element, which is a result itself.
	if !own {
		return
	}

	if lower == q.whole || strings.EqualFold(name(d), q.whole) {
		sum += wholeName
	}
	sum *= kindWeight(kind)

	// Among equal matches, the shorter name fits better.
	sum /= 1 + 0.02*float64(len(lower))
	q.hits = append(q.hits, Hit{
		Element: name(d), Kind: kind, Type: inShort(d), Score: float64(int(sum*100)) / 100, Comment: line, File: d.ParentFile().Path(),
	})
}

// nameScore returns the score of a word for a name, or 0 if the name does not contain it. lower is the name in
// lower case, and parts are its words.
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

// isOneTypo reports whether a and b differ in one letter: replaced, inserted, deleted, or two letters exchanged.
// This is a Damerau-Levenshtein distance of at most 1.
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

// lineWith returns the first line of a comment that contains a word, ignoring case, or "".
func lineWith(comment, word string) string {
	for line := range strings.Lines(comment) {
		if strings.Contains(strings.ToLower(line), word) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// inShort returns the type, signature or size of an element for a list.
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

// A Listing is one line of a table of contents of definitions.
type Listing struct {
	// Element is the full name of the listed element.
	Element string `json:"element"`
	// Kind is the kind of the listed element.
	Kind ElementKind `json:"kind"`
	// Size is the number of fields of a message, values of an enum or methods of a service; 0 for a method.
	Size int `json:"size"`
	// Type is the signature of a method; "" for other elements.
	Type string `json:"type,omitempty"`
	// File is the path of the file that declares the element.
	File string `json:"file"`
}

// Contents lists the services with their methods, then messages and enums, in the order of files and
// declarations.
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
