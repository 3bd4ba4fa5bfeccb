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

// locations has the positions and comments of the declarations in one .proto file. Computing them takes as long
// as loading the file and few commands need them, so they are computed on first use.
type locations struct {
	// declared has the locations that are part of a descriptor set. It is used if parsed is nil.
	declared protoreflect.SourceLocations
	// parsed has the locations in the source text. The key is the pathKey of the declaration.
	parsed map[string]*descriptorpb.SourceCodeInfo_Location
	// lines are the lines of the .proto source, including their line ends.
	lines []string
}

// Location returns the position of the declaration d in its file and its comments. It returns the zero value if
// the schema has no source for d.
func (s *Schema) Location(d protoreflect.Descriptor) protoreflect.SourceLocation {
	return s.locationsOf(d.ParentFile()).of(d)
}

// locationsOf returns the locations of a file and computes them on the first call. It is safe for concurrent
// use.
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

// parse computes the positions and comments of all declarations in the source text of the file called name.
func (l *locations) parse(name, text string) {
	text, _ = FoldLongLines(text)
	tree, err := parser.Parse(name, strings.NewReader(text), reporter.NewHandler(nil))
	// The file compiled before, so this does not happen.
	if err != nil {
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

// of returns the position and comments of a declaration, or the zero value if they are unknown.
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
		// A span has four numbers: start line, start column, end line, end column. The end line is left out if
		// it is the start line.
		EndLine:         int(loc.Span[0]),
		EndColumn:       int(loc.Span[len(loc.Span)-1]),
		LeadingComments: loc.GetLeadingComments(),
	}
	if len(loc.Span) > 3 {
		at.EndLine = int(loc.Span[2])
	}
	return at
}

// pathKey encodes the path of a declaration within its file (field numbers and indices, as in SourceCodeInfo)
// as a map key.
func pathKey(path []int32) string {
	key := make([]byte, 0, 4*len(path))
	for _, n := range path {
		key = binary.LittleEndian.AppendUint32(key, uint32(n))
	}
	return string(key)
}
