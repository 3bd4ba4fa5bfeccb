// Package extract extracts protobuf definitions from shipped code and writes them as .proto files or as a
// descriptor set.
//
// src, err := extract.Read(ctx, "app.asar", nil)
// set, err := extract.Merge(ctx, src)
// files := set.Print() // .proto files by path
//
// Read examines the files of an input by their formats: scripts, descriptor sets, archives, executables,
// generated source code. It reports files in formats that contain programs but cannot be read. If a reader
// panics, only that file is lost, and the panic is reported.
//
// Merge combines the declarations of sources into files that link: one for each package and syntax, with
// imports. An element is a top-level declaration. Of two elements with the same name, one is kept if it subsumes
// the other; otherwise the later one gets a number. Name conflicts, invalid declarations and missing types are
// repaired if possible, and reported. Packages that refer to each other are split into several files. Comments
// and the order of fields are those of the source if it has them.
//
// Package embedded finds descriptors in bytes, package bundle in scripts, and package archive reads the members
// of archives. The command schema extract and package schema use this package.
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

	"unwire/captures/budget"
	"unwire/schema/archive"
	"unwire/schema/bundle"
	"unwire/schema/bundle/model"
	"unwire/schema/javalite"
)

// Limits of an input.
const (
	// maxFile limits the size of a file in bytes.
	maxFile = 1 << 30
	// maxFiles limits the files of a folder.
	maxFiles = 1 << 20
)

// ErrNothing reports that an input contains no definitions.
var ErrNothing = errors.New("no schema found")

// A format is a kind of file that may contain definitions. Match looks at a name and at the first bytes of a
// file. Read passes what it finds to the collector: files inside to addData, and descriptors to addDescriptors.
type format struct {
	// Name is empty for formats that are recognised but not read.
	Name string
	// Max is the maximum size of a file in bytes. Default: maxFile.
	Max int64
	// Match reports whether a file has the format, judged by its name and first bytes.
	Match func(name string, head []byte) bool
	// Read extracts the definitions from a file of the format.
	Read func(ctx context.Context, c *collector, name string, data []byte) error

	// Mapped is set if Read neither keeps nor modifies data, so that the file may be mapped into memory.
	Mapped bool
}

// formats returns all supported file formats, in the order in which they are tried.
func formats() []format {
	return []format{unread(), scripts(), reflectionJSON(), archives(), descriptorSets(), classes(), sources(), binaries()}
}

// FormatNames returns the names of the formats that are read.
func FormatNames() []string {
	var names []string
	for _, f := range formats() {
		if f.Name != "" {
			names = append(names, f.Name)
		}
	}
	return names
}

// A collector reads the files of one input, and collects their definitions.
type collector struct {
	// onProgress, if not nil, is called from time to time with the progress.
	onProgress func(Progress)

	// formats are the file formats to try, in order.
	formats []format
	// scripts collects the definitions in scripts, and source everything else.
	scripts *bundle.Extractor
	source  Source
	// lite collects the definitions in Java classes that have no descriptors.
	lite javalite.Reader
	// forms has the names of code generators and formats that were found.
	forms map[string]bool
	// examined is the number of files in a known format, and skipped that of other files.
	examined int
	// skipped is the number of files in unknown formats.
	skipped int
	// nested is the nesting depth of the current archive.
	nested int
	// budget limits the decompressed size of the current archive.
	budget *archive.Budget
	// shared is the budget of the command; nil for none.
	shared *budget.Budget
	// definitions limits the definitions in the current file, with all its members.
	definitions definitionLimit
	// progress is the progress that was last passed to onProgress.
	progress Progress
	// embedded are the descriptors that were found in bytes. seen has their hashes.
	embedded []foundDescriptor
	// seen maps the hashes of embedded descriptors to their first place, so that each is counted once.
	seen map[[sha256.Size]byte]model.Place
	// unread are the errors of files that were not read, and faults those that are defects of unwire.
	unread []error
	// faults are the files that unwire failed to read because of a defect.
	faults []*Fault
}

// newCollector returns a collector for one input.
func newCollector(input string, formats []format) *collector {
	c := &collector{
		formats: formats, scripts: bundle.New(), forms: map[string]bool{},
		source: Source{Input: input, Notes: map[string]string{}}, seen: map[[sha256.Size]byte]model.Place{},
		definitions: newDefinitionLimit(0),
	}
	c.scripts.Meter.Spend = c.spendDefinitions
	return c
}

// addData extracts definitions from a file's content if its format is known.
func (c *collector) addData(ctx context.Context, name string, data []byte) error {
	f := c.format(name, data[:min(len(data), headBytes)])
	if f == nil {
		c.skipped++
		return nil
	}
	c.examined++
	return c.read(ctx, f, name, data)
}

// isKnownFormat reports whether a file with that name and beginning has a known format.
func (c *collector) isKnownFormat(name string, head []byte) bool { return c.format(name, head) != nil }

// addDescriptors adds file descriptors that were found in the given form.
//
// Errors: ErrTooManyDefinitions, and budget.ErrExceeded.
func (c *collector) addDescriptors(form string, files ...*descriptorpb.FileDescriptorProto) error {
	for _, f := range files {
		if err := c.spendDefinitions(model.MemoryOf(f)); err != nil {
			return err
		}
	}
	c.forms[form] = true
	c.source.Files = append(c.source.Files, files...)
	for _, f := range files {
		maps.Copy(c.source.Notes, comments(f))
	}
	return nil
}

// addUnresolved records an element whose definition is incomplete, with the reason.
func (c *collector) addUnresolved(u model.Unresolved) {
	c.source.Unresolved = append(c.source.Unresolved, u)
}

// declared returns everything that was found.
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
	if !c.lite.Empty() {
		built := c.lite.Definitions().Build(ctx)
		s.Files = append(s.Files, built.Files...)
		s.Unresolved = append(s.Unresolved, built.Open...)
		maps.Copy(s.Notes, built.Notes)
		c.forms[javalite.Form] = true
	}
	s.Examined, s.Skipped, s.Unread, s.Faults = c.examined, c.skipped, c.unread, c.faults
	s.Forms = slices.Sorted(maps.Keys(c.forms))
	return &s, nil
}

// headBytes is the number of bytes at the beginning of a file by which its format is recognised.
const headBytes = 4096

// addPath reads a file, or all files of a folder.
//
// Limits: maxFile for each file, maxArchive for archives and executables. Symbolic links in a folder are not
// followed.
// Errors: errors of a single file in a folder or archive are recorded, and the other files are read.
func (c *collector) addPath(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		err := c.addFile(ctx, path, info)
		// A panic is recorded even for a single file: the rest of the input is still valid.
		if fault := (*Fault)(nil); errors.As(err, &fault) {
			return c.recordFailure(ctx, path, err)
		}
		if isBomb(err) || err == nil || ctx.Err() != nil || !c.hasFound() {
			if dir, ok := unpackedFolder(path); ok && err == nil {
				return c.addPath(ctx, dir)
			}
			return err
		}
		// Something was read before the error, so the error is recorded only.
		return c.recordFailure(ctx, path, err)
	}

	n := 0
	return filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		// Symbolic links are not regular files, so they are not followed.
		if n++; n > maxFiles {
			return fmt.Errorf("%s contains more than %d files", path, maxFiles)
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

// hasFound reports whether any definition was found so far.
func (c *collector) hasFound() bool {
	return len(c.source.Files) > 0 || !c.scripts.Empty() || !c.lite.Empty()
}

// format returns the format of a file, or nil if it is unknown.
func (c *collector) format(name string, head []byte) *format {
	i := slices.IndexFunc(c.formats, func(f format) bool { return f.Match(name, head) })
	if i < 0 {
		return nil
	}
	return &c.formats[i]
}

// limit returns the maximum size of a file in bytes.
func (c *collector) limit(name string, head []byte) int64 {
	if f := c.format(name, head); f != nil && f.Max > 0 {
		return f.Max
	}
	return maxFile
}

// leastMapped is the size in bytes from which on files are mapped into memory.
const leastMapped = 1 << 20

// addFile reads one file from disk.
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
		return fmt.Errorf("%s: %w: it has %d bytes, and unwire reads at most %d", name, bundle.ErrTooLarge, info.Size(), limit)
	}

	c.definitions, c.scripts.Meter.Refused = newDefinitionLimit(info.Size()), nil
	c.shared.Input(info.Size())
	if err := c.shared.Spend(budget.Members, 1); err != nil {
		return err
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

	// One byte more than expected, so that the end is found without growing the buffer.
	data := make([]byte, 0, max(info.Size(), int64(n))+1)
	for {
		// The file has grown since its size was read.
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
