package extract

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle"
	"unwire/schema/bundle/model"
	"unwire/schema/classfile"
	"unwire/schema/embedded"
	"unwire/schema/interrupt"
)

// classes returns the file format for Java class files.
func classes() format {
	return format{
		Name:  "Java class",
		Match: func(_ string, head []byte) bool { return classfile.Is(head) },
		Read: func(ctx context.Context, c *collector, name string, data []byte) error {
			found, err := embedded.ScanClass(ctx, data)
			// Code for the lite runtime has no descriptors.
			c.lite.Add(name, classfile.Parse(data))
			return errors.Join(c.addFound(name, found), err)
		},
	}
}

// sources returns the file format for source code that protoc plugins generate, in languages that are shipped
// as source.
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
			return errors.Join(c.addFound(name, found), err)
		},
	}
}

// binaries returns the file format for all other binary files, such as executables and libraries.
func binaries() format {
	return format{
		Name:   "executable",
		Max:    maxArchive,
		Mapped: true,
		Match:  func(name string, head []byte) bool { return isBinary(head) && !isMedia(name) },
		Read: func(ctx context.Context, c *collector, name string, data []byte) error {
			found, err := embedded.Scan(ctx, data)
			if err := errors.Join(c.addFound(name, found), err); err != nil {
				return err
			}
			return c.scriptsIn(ctx, name, data)
		},
	}
}

// scriptWords returns words in the output of JavaScript code generators that survive minification, by which
// scripts are found. Scripts with descriptors in base64 need no such words.
func scriptWords() [][]byte {
	var words [][]byte
	for _, w := range []string{`kind:"scalar"`, `kind: "scalar"`, "makeMessageType", "newFieldList", "serializeBinaryToWriter", ".uint32("} {
		words = append(words, []byte(w))
	}
	return words
}

// scriptsIn extracts definitions from the scripts in an executable that bundles JavaScript with its runtime. A
// script is the text between two zero bytes that contains one of scriptWords.
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
			// Several words in one script give the same span.
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
			c.recordUnread(name, fmt.Errorf("%w: the script at %#x", bundle.ErrTooLarge, s.begin))
			continue
		}
		// data may be mapped memory, which is unmapped before the scripts are read.
		text := bytes.Clone(data[s.begin:s.end])
		if err := c.scripts.Add(ctx, fmt.Sprintf("%s@%#x", name, s.begin), text); err != nil {
			return err
		}
	}
	return nil
}

// maxSpans is the maximum number of scripts that are read from one executable.
const maxSpans = 4096

// isBinary reports whether a file with the first bytes head is not UTF-8 text.
func isBinary(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		// An incomplete character at the end may be cut off by the limit on head.
		if r == utf8.RuneError && n == 1 {
			return utf8.FullRune(head) || len(head) >= utf8.UTFMax
		}
		head = head[n:]
	}
	return false
}

// addFound adds descriptors that were found in the file name. Equal descriptors are added once.
//
// Errors: ErrTooManyDefinitions, and budget.ErrExceeded.
func (c *collector) addFound(name string, found []embedded.Found) error {
	for _, f := range found {
		// Source positions differ between copies of the same file.
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
		c.seen[key] = model.Place{File: name, Offset: f.Offset}
		f.File.SourceCodeInfo = info
		if err := c.addDescriptors(string(f.Form), f.File); err != nil {
			return err
		}
		c.embedded = append(c.embedded, foundDescriptor{f.File, model.Place{File: name, Offset: f.Offset}})
	}
	return nil
}

// A foundDescriptor is a file descriptor with its position in the input.
type foundDescriptor struct {
	// file is the found file descriptor.
	file *descriptorpb.FileDescriptorProto
	// place is the position at which the descriptor was found.
	place model.Place
}

// missing returns the imports of embedded descriptors that were not found, as unresolved elements.
func (c *collector) missing() []model.Unresolved {
	have := map[string]bool{}
	for _, f := range c.source.Files {
		// A file may be registered below a root that differs from that of its imports.
		for name, ok := f.GetName(), true; ok; _, name, ok = strings.Cut(name, "/") {
			have[name] = true
		}
	}

	want := map[string]model.Unresolved{}
	for _, p := range c.embedded {
		for _, dep := range p.file.Dependency {
			if have[dep] || isStandardFile(dep) {
				continue
			}
			// Each missing file is reported once, at the first file that imports it.
			if _, listed := want[dep]; !listed {
				want[dep] = model.Unresolved{
					Element: dep, Place: p.place, Reason: fmt.Sprintf("%s imports this file, which was not found", p.file.GetName()),
				}
			}
		}
	}
	var list []model.Unresolved
	for _, dep := range slices.Sorted(maps.Keys(want)) {
		list = append(list, want[dep])
	}
	return list
}
