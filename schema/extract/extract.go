// Package extract collects protobuf schemas out of what ships them, and writes them as
// .proto files and as one descriptor set.
//
// [Read] takes the files of one input apart by their formats: scripts, descriptor sets,
// archives, executables. Of unread formats it reports that they hold programs. If a
// reader panics, that costs the one file, and is reported.
//
// [Merge] joins what inputs declare into merged files that link: one per package and
// syntax, with the imports that they need. An element is a declaration at the top level of a file. Of two
// elements with one name, one stays if it subsumes the other; others are numbered.
// Conflicts of names, broken declarations and missing types are reported, and mended
// where that is possible.
// Packages in a cycle are split over files, which is possible as long as no message is in
// the cycle. A Set is the result. Its comments and the order of its fields are those of
// the source where the source has them.
//
// Package embedded finds descriptors in bytes, package bundle in scripts, package archive
// reads members; this package knows no traffic.
package extract

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/edsrzf/mmap-go"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/archive"
	"unwire/schema/bundle"
)

const (
	// maxFile bounds the size of one file that is read.
	maxFile = 1 << 30
	// maxFiles bounds how many files of a folder are looked at.
	maxFiles = 1 << 20
)

// ErrNothing is returned where an input holds no schema.
var ErrNothing = errors.New("no schema found")

// A format is a kind of file that may hold schemas.
//
// Shape: Match looks at a name and at the first bytes. Read hands what it finds
// to the collector: with addData the files inside, with addDescriptors descriptors.
type format struct {
	Name  string // "" of what is known and not read
	Max   int64  // bytes of a file that is read; 0 is maxFile
	Match func(name string, head []byte) bool
	Read  func(ctx context.Context, c *collector, name string, data []byte) error

	// Mapped says that Read keeps nothing of data and does not write to it, so
	// that a file may be mapped instead of being read.
	Mapped bool
}

// formats are the formats that are known.
func formats() []format {
	return []format{unread(), scripts(), reflectionJSON(), archives(), descriptorSets(), classes(), sources(), binaries()}
}

// FormatNames are the names of the kinds of files that are read.
func FormatNames() []string {
	var names []string
	for _, f := range formats() {
		if f.Name != "" {
			names = append(names, f.Name)
		}
	}
	return names
}

// A collector takes an input's files apart.
type collector struct {
	// onProgress, if set, is called from time to time with how far the reading is.
	onProgress func(Progress)

	formats  []format
	scripts  *bundle.Extractor
	source   Source
	forms    map[string]bool
	looked   int
	skipped  int
	nested   int // archives that are being read
	budget   *archive.Budget
	progress Progress
	embedded []placed
	seen     map[[sha256.Size]byte]bundle.Place
	unread   []error // what was not read
	faults   []*Fault
}

// newCollector returns a collector for one input.
func newCollector(input string, formats []format) *collector {
	return &collector{
		formats: formats, scripts: bundle.New(), forms: map[string]bool{},
		source: Source{Input: input, Notes: map[string]string{}}, seen: map[[sha256.Size]byte]bundle.Place{},
	}
}

// addData takes a file apart, if it is of a known format.
func (c *collector) addData(ctx context.Context, name string, data []byte) error {
	f := c.format(name, data[:min(len(data), headBytes)])
	if f == nil {
		c.skipped++
		return nil
	}
	c.looked++
	return c.read(ctx, f, name, data)
}

// isKnownFormat says whether a file of that name and beginning is of a known format.
func (c *collector) isKnownFormat(name string, head []byte) bool { return c.format(name, head) != nil }

// addDescriptors enters descriptors that were found as such.
func (c *collector) addDescriptors(form string, files ...*descriptorpb.FileDescriptorProto) {
	c.forms[form] = true
	c.source.Files = append(c.source.Files, files...)
	for _, f := range files {
		maps.Copy(c.source.Notes, comments(f))
	}
}

// addUnresolved enters what was seen and could not be told in full.
func (c *collector) addUnresolved(u bundle.Unresolved) {
	c.source.Unresolved = append(c.source.Unresolved, u)
}

// declared returns what the input declares.
//
// Errors: the context's.
func (c *collector) declared(ctx context.Context) (*Source, error) {
	r, err := c.scripts.Result(ctx)
	if err != nil {
		return nil, err
	}
	s := c.source
	s.Files = append(slices.Clone(s.Files), r.Files...)
	s.Unresolved = slices.Concat(s.Unresolved, c.missing(), r.Unresolved)
	s.Notes = maps.Clone(s.Notes)
	maps.Copy(s.Notes, r.Notes)
	for _, form := range r.Forms {
		c.forms[form] = true
	}
	s.Looked, s.Skipped, s.Unread, s.Faults = c.looked, c.skipped, c.unread, c.faults
	s.Forms = slices.Sorted(maps.Keys(c.forms))
	return &s, nil
}

// headBytes is how much of a file its format is told by.
const headBytes = 4096

// addPath takes a file or all files of a folder apart.
//
// Limits: maxFile for each, maxArchive for archives and executables. Symbolic
// links in a folder are not followed. What is wrong with one file of a folder or
// an archive is listed among what is unresolved, and the others are read.
func (c *collector) addPath(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		err := c.addFile(ctx, path, info)
		if fault := (*Fault)(nil); errors.As(err, &fault) {
			return c.recordFailure(ctx, path, err)
		}
		if errors.Is(err, archive.ErrBomb) || err == nil || ctx.Err() != nil || !c.found() {
			if dir, ok := unpackedFolder(path); ok && err == nil {
				return c.addPath(ctx, dir)
			}
			return err
		}
		return c.recordFailure(ctx, path, err) // what was read up to there
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
		if err := c.addFile(ctx, name, info); err != nil {
			return c.recordFailure(ctx, name, err)
		}
		return nil
	})
}

// found says whether anything was found so far.
func (c *collector) found() bool {
	return len(c.source.Files) > 0 || !c.scripts.Empty()
}

// format returns the format of a file, or nil.
func (c *collector) format(name string, head []byte) *format {
	i := slices.IndexFunc(c.formats, func(f format) bool { return f.Match(name, head) })
	if i < 0 {
		return nil
	}
	return &c.formats[i]
}

// limit is how many bytes of a file are read.
func (c *collector) limit(name string, head []byte) int64 {
	if f := c.format(name, head); f != nil && f.Max > 0 {
		return f.Max
	}
	return maxFile
}

// leastMapped is the size from which on files are mapped, in bytes.
const leastMapped = 1 << 20

func (c *collector) addFile(ctx context.Context, name string, info fs.FileInfo) error {
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
	if !c.isKnownFormat(name, head[:n]) {
		c.skipped++
		return nil
	}
	limit := c.limit(name, head[:n])
	if info.Size() > limit {
		return fmt.Errorf("%s: %w: %d bytes, at most %d are read", name, bundle.ErrTooLarge, info.Size(), limit)
	}
	c.progress = Progress{File: name, Size: info.Size()}
	c.reportProgress(0)
	if format := c.format(name, head[:n]); format.Mapped && info.Size() >= leastMapped && info.Mode().IsRegular() {
		data, err := mmap.MapRegion(f, int(info.Size()), mmap.RDONLY, 0, 0)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		return errors.Join(c.addData(ctx, name, data[:len(data):len(data)]), data.Unmap())
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
	return c.addData(ctx, name, data)
}
