// Package extract collects protobuf schemas out of what ships them, and writes
// them as .proto files and as one descriptor set.
//
// A [Collector] takes the files of one input apart by their [Format]; [Merge]
// joins what inputs declare into files that link: one per package, with the
// imports that they need.
package extract

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle"
)

const (
	// MaxFile bounds the size of one file that is read.
	MaxFile = 1 << 30
	// maxFiles bounds how many files of a folder are looked at.
	maxFiles = 1 << 20
)

// ErrNothing is returned where an input holds no schema.
var ErrNothing = errors.New("no schema found")

// A Source is what one input declares.
type Source struct {
	Input      string
	Forms      []string // codegens and formats that were found
	Files      []*descriptorpb.FileDescriptorProto
	Notes      map[string]string // by full name: what a comment should say
	Unresolved []bundle.Unresolved
}

// Form is the source's forms as one word.
func (s *Source) Form() string { return strings.Join(s.Forms, ",") }

// A Format is a kind of file that may hold schemas.
//
// Shape: Match looks at a name and at the first bytes. Read hands what it finds
// to the collector: with Add the files inside, with AddFiles descriptors.
type Format struct {
	Name  string
	Max   int64 // bytes of a file that is read; 0 is MaxFile
	Match func(name string, head []byte) bool
	Read  func(ctx context.Context, c *Collector, name string, data []byte) error
}

// Formats are the formats that are known.
func Formats() []Format {
	return []Format{scripts(), descriptorSets()}
}

// A Collector takes an input's files apart.
type Collector struct {
	formats []Format
	scripts *bundle.Extractor
	source  Source
	forms   map[string]bool
	looked  int
	skipped int
}

// NewCollector returns a collector for one input.
func NewCollector(input string, formats []Format) *Collector {
	return &Collector{
		formats: formats, scripts: bundle.New(bundle.Options{}), forms: map[string]bool{},
		source: Source{Input: input, Notes: map[string]string{}},
	}
}

// Add takes a file apart, if it is of a known format.
func (c *Collector) Add(ctx context.Context, name string, data []byte) error {
	for _, f := range c.formats {
		if f.Match(name, data[:min(len(data), headBytes)]) {
			c.looked++
			return f.Read(ctx, c, name, data)
		}
	}
	c.skipped++
	return nil
}

// Wants says whether a file of that name and beginning is of a known format.
func (c *Collector) Wants(name string, head []byte) bool {
	return slices.ContainsFunc(c.formats, func(f Format) bool { return f.Match(name, head) })
}

// AddFiles enters descriptors that were found as such.
func (c *Collector) AddFiles(form string, files ...*descriptorpb.FileDescriptorProto) {
	c.forms[form] = true
	c.source.Files = append(c.source.Files, files...)
}

// AddUnresolved enters what was seen and could not be told in full.
func (c *Collector) AddUnresolved(u bundle.Unresolved) {
	c.source.Unresolved = append(c.source.Unresolved, u)
}

// Looked returns how many files were of a known format.
func (c *Collector) Looked() int { return c.looked }

// Source returns what the input declares.
func (c *Collector) Source() *Source {
	r := c.scripts.Result()
	s := c.source
	s.Files = append(slices.Clone(s.Files), r.Files...)
	s.Unresolved = append(slices.Clone(s.Unresolved), r.Unresolved...)
	s.Notes = maps.Clone(s.Notes)
	maps.Copy(s.Notes, r.Notes)
	for _, form := range r.Forms {
		c.forms[form] = true
	}
	s.Forms = slices.Sorted(maps.Keys(c.forms))
	return &s
}

// headBytes is how much of a file its format is told by.
const headBytes = 4096

// AddPath takes a file or all files of a folder apart.
//
// Limits: MaxFile for each. Symbolic links in a folder are not followed.
func (c *Collector) AddPath(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return c.addFile(ctx, path, info)
	}
	n := 0
	return filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if n++; n > maxFiles {
			return fmt.Errorf("%s holds more than %d files", path, maxFiles)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return c.addFile(ctx, name, info)
	})
}

// limit is how many bytes of a file are read.
func (c *Collector) limit(name string, head []byte) int64 {
	for _, f := range c.formats {
		if f.Match(name, head) && f.Max > 0 {
			return f.Max
		}
	}
	return MaxFile
}

func (c *Collector) addFile(ctx context.Context, name string, info fs.FileInfo) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, headBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if !c.Wants(name, head[:n]) {
		c.skipped++
		return nil
	}
	limit := c.limit(name, head[:n])
	if info.Size() > limit {
		return fmt.Errorf("%s: %w: %d bytes, at most %d are read", name, bundle.ErrTooLarge, info.Size(), limit)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	// One byte more, so that the end is seen without growing.
	data := make([]byte, 0, max(info.Size(), int64(n))+1)
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if int64(len(data)) > limit {
			return fmt.Errorf("%s: %w: at most %d bytes are read", name, bundle.ErrTooLarge, limit)
		}
	}
	return c.Add(ctx, name, data)
}
