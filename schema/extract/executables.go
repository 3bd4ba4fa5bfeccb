package extract

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle"
	"unwire/schema/embedded"
	"unwire/schema/interrupt"
)

// classes are Java class files.
func classes() format {
	return format{
		Name:  "Java class",
		Match: func(_ string, head []byte) bool { return embedded.IsClass(head) },
		Read: func(ctx context.Context, c *collector, name string, data []byte) error {
			found, err := embedded.ScanClass(ctx, data)
			c.addFound(name, found)
			return err
		},
	}
}

// sources are what protoc's plugins write for languages whose sources ship.
func sources() format {
	return format{
		Name: "generated source",
		Match: func(name string, _ []byte) bool {
			return slices.Contains([]string{
				".py", ".rb", ".php", ".java", ".kt", ".scala", ".cs", ".go", ".cc", ".cpp", ".cxx", ".c", ".h", ".rs", ".swift", ".dart", ".ts", ".mts", ".cts",
			}, strings.ToLower(path.Ext(name)))
		},
		Read: func(ctx context.Context, c *collector, name string, data []byte) error {
			found, err := embedded.ScanSource(ctx, data)
			c.addFound(name, found)
			return err
		},
	}
}

// binaries are files of bytes: executables, libraries, and whatever else.
func binaries() format {
	return format{
		Name:   "executable",
		Max:    maxArchive,
		Mapped: true,
		Match:  func(name string, head []byte) bool { return isBinary(head) && !isMedia(name) },
		Read: func(ctx context.Context, c *collector, name string, data []byte) error {
			found, err := embedded.Scan(ctx, data)
			c.addFound(name, found)
			if err != nil {
				return err
			}
			return c.scriptsIn(ctx, name, data)
		},
	}
}

// scriptWords are words of codegens' output that survive minifiers. Descriptors
// in base64 are found without them.
func scriptWords() [][]byte {
	var words [][]byte
	for _, w := range []string{`kind:"scalar"`, `kind: "scalar"`, "makeMessageType", "newFieldList", "serializeBinaryToWriter", ".uint32("} {
		words = append(words, []byte(w))
	}
	return words
}

// scriptsIn reads the scripts that stand as text in an executable, which bundles
// them with their runtime: text around the words of codegens, up to the zeros
// before and after it.
func (c *collector) scriptsIn(ctx context.Context, name string, data []byte) error {
	type span struct{ begin, end int }
	spans := map[span]bool{}
	for _, word := range scriptWords() {
		for at := 0; ctx.Err() == nil; {
			i := interrupt.Index(ctx, data[at:], word)
			if i < 0 || len(spans) > maxSpans {
				break
			}
			at += i
			s := span{bytes.LastIndexByte(data[:at], 0) + 1, len(data)}
			if n := bytes.IndexByte(data[at:], 0); n >= 0 {
				s.end = at + n
			}
			spans[s] = true
			at = s.end
		}
	}
	for _, s := range slices.SortedFunc(maps.Keys(spans), func(a, b span) int { return a.begin - b.begin }) {
		if s.end-s.begin > bundle.MaxScript {
			c.recordUnread(name, fmt.Errorf("%w: the text at %#x", bundle.ErrTooLarge, s.begin))
			continue
		}
		// data may be mapped memory that is unmapped
		text := bytes.Clone(data[s.begin:s.end])
		if err := c.scripts.Add(ctx, fmt.Sprintf("%s@%#x", name, s.begin), text); err != nil {
			return err
		}
	}
	return nil
}

// maxSpans bounds how many scripts are read of one executable.
const maxSpans = 4096

// isBinary says whether a file that begins with head is no text.
func isBinary(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		if r == utf8.RuneError && n == 1 {
			return utf8.FullRune(head) || len(head) >= utf8.UTFMax
		}
		head = head[n:]
	}
	return false
}

// addFound enters descriptors that were found in a file; of those that are the
// same one.
func (c *collector) addFound(name string, found []embedded.Found) {
	for _, f := range found {
		info := f.File.SourceCodeInfo
		f.File.SourceCodeInfo = nil
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(f.File)
		if err != nil {
			continue
		}
		key := sha256.Sum256(data)
		if _, again := c.seen[key]; again {
			continue
		}
		c.seen[key] = bundle.Place{File: name, Offset: f.Offset}
		f.File.SourceCodeInfo = info
		c.addDescriptors(string(f.Form), f.File)
		c.embedded = append(c.embedded, placed{f.File, bundle.Place{File: name, Offset: f.Offset}})
	}
}

// A placed is a descriptor with where it was found.
type placed struct {
	file  *descriptorpb.FileDescriptorProto
	place bundle.Place
}

// missing lists what the descriptors import and nothing declares, once each.
func (c *collector) missing() []bundle.Unresolved {
	have := map[string]bool{}
	for _, f := range c.source.Files {
		// A file may be registered below another root than it is imported from.
		for name, ok := f.GetName(), true; ok; _, name, ok = strings.Cut(name, "/") {
			have[name] = true
		}
	}
	want := map[string]bundle.Unresolved{}
	for _, p := range c.embedded {
		for _, dep := range p.file.Dependency {
			if have[dep] || isStandardFile(dep) {
				continue
			}
			if _, listed := want[dep]; !listed {
				want[dep] = bundle.Unresolved{
					Element: dep, Place: p.place, Reason: fmt.Sprintf("%s imports it, and it was not found", p.file.GetName()),
				}
			}
		}
	}
	var list []bundle.Unresolved
	for _, dep := range slices.Sorted(maps.Keys(want)) {
		list = append(list, want[dep])
	}
	return list
}
