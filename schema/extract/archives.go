package extract

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"unwire/captures/budget"
	"unwire/schema/archive"
	"unwire/schema/bundle/model"
)

// Limits for archives.
const (
	// maxNested is the maximum nesting of archives. A package, the archive in it and the tar inside that are
	// three.
	maxNested = 8
	// maxArchive is the maximum size in bytes of an archive or executable, which is mapped into memory.
	maxArchive = 16 << 30
)

// archives returns the file format for all archives that package archive reads. They are recognized by their
// first bytes.
func archives() format {
	return format{
		Name:   "archive",
		Max:    maxArchive,
		Mapped: true,
		Match:  func(_ string, head []byte) bool { return archive.Detect(head) != "" },
		Read: func(ctx context.Context, c *collector, name string, data []byte) error {
			return c.archive(ctx, name, data)
		},
	}
}

// archive extracts definitions from the members of an archive, which may be archives themselves. name is the
// archive's path.
func (c *collector) archive(ctx context.Context, name string, data []byte) error {
	// All archives inside one file share a budget, so that nested archive bombs are detected.
	if c.budget == nil {
		c.budget = archive.NewBudget(int64(len(data)), budget.Of(ctx))
		defer func() { c.budget = nil }()
	}
	if c.nested++; c.nested > maxNested {
		c.nested--
		return fmt.Errorf("%s: archives are nested more than %d deep", name, maxNested)
	}

	outer := c.nested == 1
	defer func() { c.nested-- }()

	kind := archive.Detect(data[:min(len(data), archive.HeadBytes)])
	err := archive.Walk(ctx, kind, name, data, c.budget, archive.Visitor{
		Limit: func(member string, head []byte) int64 {
			if outer {
				c.progress.Member = member
			}
			// Members of unknown formats are not decompressed.
			if !c.isKnownFormat(member, head) {
				c.skipped++
				return 0
			}
			return min(c.limit(member, head), maxFile)
		},
		Member: func(member string, data []byte) error {
			return c.addMember(ctx, name+"/"+member, data)
		},
		Broken: func(member string, err error) { c.recordUnread(name+"/"+member, err) },
		At: func(read int64) {
			if outer {
				c.reportProgress(read)
			}
		},
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return err
}

// addMember extracts definitions from a file of a folder or an archive. If the file cannot be read, this is
// recorded, so that the other files are still read.
func (c *collector) addMember(ctx context.Context, name string, data []byte) error {
	if err := c.addData(ctx, name, data); err != nil {
		return c.recordFailure(ctx, name, err)
	}
	return nil
}

// recordFailure records that a file was not read because of err. It returns err only if reading must end: if
// the context has ended, in an archive bomb, or if the budget of the command is exceeded.
func (c *collector) recordFailure(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil || c.nested > 0 && isBomb(err) || errors.Is(err, budget.ErrExceeded) {
		return err
	}
	c.recordUnread(name, err)
	return nil
}

// recordUnread records that a file was not read because of err.
func (c *collector) recordUnread(name string, err error) {
	if !strings.HasPrefix(err.Error(), name+": ") {
		err = fmt.Errorf("%s: %w", name, err)
	}
	c.unread = append(c.unread, err)
	reason := strings.TrimPrefix(err.Error(), name+": ")
	c.addUnresolved(model.Unresolved{Element: path.Base(name), Place: model.Place{File: name}, Reason: "not read: " + reason})
}

// Progress describes how much of an input has been read.
type Progress struct {
	// File is the path of the file that is being read.
	File string
	// Member is the current member if File is an archive.
	Member string
	// Read is the number of bytes of File that were read, and Size its total size in bytes.
	Read, Size int64
}

// reportProgress calls onProgress, if set. read is the number of bytes of the current file that were read.
func (c *collector) reportProgress(read int64) {
	if c.onProgress != nil {
		c.progress.Read = read
		c.onProgress(c.progress)
	}
}

// unpackedFolder returns the folder next to an asar archive (of Electron) with the files that are stored
// outside of it. ok is false if there is none.
func unpackedFolder(name string) (string, bool) {
	dir := name + ".unpacked"
	info, err := os.Lstat(dir)
	return dir, err == nil && info.IsDir() && strings.EqualFold(path.Ext(name), ".asar")
}

// isMedia reports whether a file's extension is that of images, sound or other media, which are often large and
// contain no definitions.
func isMedia(name string) bool {
	return slices.Contains([]string{
		".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".ico", ".icns", ".bmp", ".svg", ".mp3", ".mp4", ".webm", ".ogg", ".wav", ".flac", ".mov", ".avi",
		".woff", ".woff2", ".ttf", ".otf", ".eot", ".pdf", ".map",
	}, strings.ToLower(path.Ext(name)))
}
