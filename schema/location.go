package schema

import (
	"encoding/binary"
	"strings"

	"github.com/bufbuild/protocompile/parser"
	"github.com/bufbuild/protocompile/reporter"
	"github.com/bufbuild/protocompile/sourceinfo"
	"github.com/jhump/protoreflect/v2/sourceloc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// locations are where the declarations of a file are in its text, and their
// comments. Few commands need them, and to find them takes as long as to load the
// file, so that they are found when a file's are first asked for.
type locations struct {
	declared protoreflect.SourceLocations // of a descriptor set that has them
	parsed   map[string]*descriptorpb.SourceCodeInfo_Location
	lines    []string // of the text, with their ends
}

// Location returns where a declaration of s is in its file, with its comments; the zero
// value if that is not known.
func (s *Schema) Location(d protoreflect.Descriptor) protoreflect.SourceLocation {
	return s.locationsOf(d.ParentFile()).of(d)
}

func (s *Schema) locationsOf(f protoreflect.FileDescriptor) *locations {
	s.locating.Lock()
	defer s.locating.Unlock()
	if l := s.located[f.Path()]; l != nil {
		return l
	}
	l := &locations{declared: f.SourceLocations()}
	if text, ok := s.sources[f.Path()]; ok {
		l.parse(f.Path(), text)
	}
	if s.located == nil {
		s.located = map[string]*locations{}
	}
	s.located[f.Path()] = l
	return l
}

func (l *locations) parse(name, text string) {
	text, _ = Fold(text)
	tree, err := parser.Parse(name, strings.NewReader(text), reporter.NewHandler(nil))
	if err != nil { // it was compiled before
		return
	}
	l.lines = strings.SplitAfter(text, "\n")
	l.parsed = map[string]*descriptorpb.SourceCodeInfo_Location{}
	for _, loc := range sourceinfo.GenerateSourceInfo(tree, nil).Location {
		if key := pathKey(loc.Path); l.parsed[key] == nil {
			l.parsed[key] = loc
		}
	}
}

func (l *locations) of(d protoreflect.Descriptor) protoreflect.SourceLocation {
	if l.parsed == nil {
		return l.declared.ByDescriptor(d)
	}
	path := sourceloc.PathFor(d)
	loc := l.parsed[pathKey(path)]
	if path == nil || loc == nil || len(loc.Span) < 3 {
		return protoreflect.SourceLocation{}
	}
	at := protoreflect.SourceLocation{
		Path:        path,
		StartLine:   int(loc.Span[0]),
		StartColumn: int(loc.Span[1]),
		// of three numbers, it is the line that it begins in
		EndLine:         int(loc.Span[0]),
		EndColumn:       int(loc.Span[len(loc.Span)-1]),
		LeadingComments: loc.GetLeadingComments(),
	}
	if len(loc.Span) > 3 {
		at.EndLine = int(loc.Span[2])
	}
	return at
}

// pathKey is a path as the key of a map.
func pathKey(path []int32) string {
	key := make([]byte, 0, 4*len(path))
	for _, n := range path {
		key = binary.LittleEndian.AppendUint32(key, uint32(n))
	}
	return string(key)
}
