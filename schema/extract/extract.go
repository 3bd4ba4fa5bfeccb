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

// Limits of an input: a file or a folder.
const (
	// maxFile is the maximum size of a file in bytes, unless its format has another limit.
	maxFile = 1 << 30
	// maxFiles is the maximum number of files in a folder.
	maxFiles = 1 << 20
)

// ErrNothing is wrapped by the error for an input that contains no definitions.
var ErrNothing = errors.New("no definitions were found")

// A format is a kind of file that may contain definitions, such as an archive.
type format struct {
	// Name is the name for users; "" for formats that are recognized but not read.
	Name string
	// Max is the maximum size of a file in bytes. Default: maxFile.
	Max int64
	// Match reports whether a file has the format, judged by its name and first bytes.
	Match func(name string, head []byte) bool
	// Read extracts the definitions from a file of the format and passes them to c: files inside it to addData,
	// and descriptors to addDescriptors.
	Read func(ctx context.Context, c *collector, name string, data []byte) error

	// Mapped is set if Read neither keeps nor modifies data, so that the file may be mapped into memory instead
	// of being read.
	Mapped bool
}

// formats returns all supported file formats, in the order in which they are tried.
func formats() []format {
	return []format{unread(), scripts(), reflectionJSON(), archives(), descriptorSets(), classes(), sources(), binaries()}
}

// FormatNames returns the names of the formats from which definitions are extracted.
func FormatNames() []string {
	var names []string
	for _, f := range formats() {
		if f.Name != "" {
			names = append(names, f.Name)
		}
	}
	return names
}

// A collector reads the files of one input (a file or a folder) and collects their definitions.
type collector struct {
	// onProgress, if not nil, is called from time to time with the progress.
	onProgress func(Progress)

	// formats are the file formats to try, in order.
	formats []format
	// scripts collects the definitions in JavaScript.
	scripts *bundle.Extractor
	// source collects all other definitions.
	source Source
	// lite collects the definitions in Java classes that have no descriptors.
	lite javalite.Reader
	// forms has the names of the code generators and encodings that were found.
	forms map[string]bool
	// examined is the number of files in a known format.
	examined int
	// skipped is the number of files in unknown formats.
	skipped int
	// nested is the nesting depth of the archive that is being read; 0 outside of archives.
	nested int
	// budget limits the decompressed size of the current archive, including nested ones; nil outside of
	// archives.
	budget *archive.Budget
	// shared is the budget of the whole command; nil if there is none.
	shared *budget.Budget
	// definitions limits the memory for definitions in the current file, including all members of an archive.
	definitions definitionLimit
	// progress is the progress that was last passed to onProgress.
	progress Progress
	// embedded are the descriptors that were found in binary files and source code.
	embedded []foundDescriptor
	// seen maps the hashes of embedded descriptors to their first place, so that each is counted once.
	seen map[[sha256.Size]byte]model.Place
	// unread are the errors of files that were not read.
	unread []error
	// faults are the failures that are caused by a defect of unwire.
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

// addData extracts definitions from a file's content if its format is known. name is the path of the file.
func (c *collector) addData(ctx context.Context, name string, data []byte) error {
	f := c.format(name, data[:min(len(data), headBytes)])
	if f == nil {
		c.skipped++
		return nil
	}
	c.examined++
	return c.read(ctx, f, name, data)
}

// isKnownFormat reports whether a file with that name and these first bytes has a known format.
func (c *collector) isKnownFormat(name string, head []byte) bool { return c.format(name, head) != nil }

// addDescriptors adds complete file descriptors. form is the encoding or code generator.
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

// declared returns all definitions found so far.
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

// headBytes is the number of bytes at the beginning of a file from which its format is recognized.
const headBytes = 4096

// addPath extracts definitions from a file, or from all files of a folder.
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

// format returns the format of a file with that name and these first bytes, or nil if it is unknown.
func (c *collector) format(name string, head []byte) *format {
	i := slices.IndexFunc(c.formats, func(f format) bool { return f.Match(name, head) })
	if i < 0 {
		return nil
	}
	return &c.formats[i]
}

// limit returns the maximum size in bytes of a file with that name and these first bytes.
func (c *collector) limit(name string, head []byte) int64 {
	if f := c.format(name, head); f != nil && f.Max > 0 {
		return f.Max
	}
	return maxFile
}

// leastMapped is the size in bytes from which on files are mapped into memory, if their format allows that.
const leastMapped = 1 << 20

// addFile extracts definitions from one file on disk.
func (c *collector) addFile(ctx context.Context, name string, info fs.FileInfo) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, headBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return fmt.Errorf("cannot read %s: %w", name, err)
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
			return fmt.Errorf("cannot read %s: %w", name, err)
		}
		return errors.Join(c.addData(ctx, name, data[:len(data):len(data)]), data.Unmap())
	}

	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("cannot read %s: %w", name, err)
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
			return fmt.Errorf("cannot read %s: %w", name, err)
		}
		if int64(len(data)) > limit {
			return fmt.Errorf("%s: %w: at most %d bytes are read", name, bundle.ErrTooLarge, limit)
		}
	}
	return c.addData(ctx, name, data)
}
