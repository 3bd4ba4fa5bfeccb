package extract

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"unwire/schema/archive"
	"unwire/schema/bundle"
)

const (
	// maxNested bounds how many archives may be in each other: a package, the
	// archive in it, and the tar in that are three.
	maxNested = 8
	// maxArchive bounds the size of an archive or executable that is mapped.
	maxArchive = 16 << 30
)

// archives are the formats that package archive reads, by their first bytes.
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

func (c *collector) archive(ctx context.Context, name string, data []byte) error {
	if c.budget == nil {
		c.budget = archive.NewBudget(int64(len(data)))
		defer func() { c.budget = nil }()
	}
	if c.nested++; c.nested > maxNested {
		c.nested--
		return fmt.Errorf("%s: more than %d archives in each other", name, maxNested)
	}
	outer := c.nested == 1
	defer func() { c.nested-- }()
	kind := archive.Detect(data[:min(len(data), archive.HeadBytes)])
	err := archive.Walk(ctx, kind, name, data, c.budget, archive.Visitor{
		Limit: func(member string, head []byte) int64 {
			if outer {
				c.progress.Member = member
			}
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

// addMember takes a file of a folder or an archive apart. What is wrong with it does
// not cost the others: it is listed.
func (c *collector) addMember(ctx context.Context, name string, data []byte) error {
	if err := c.addData(ctx, name, data); err != nil {
		return c.recordFailure(ctx, name, err)
	}
	return nil
}

// recordFailure lists what could not be read of a folder or an archive, but for what
// ends it all.
func (c *collector) recordFailure(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil || c.nested > 0 && errors.Is(err, archive.ErrBomb) {
		return err
	}
	c.recordUnread(name, err)
	return nil
}

func (c *collector) recordUnread(name string, err error) {
	if !strings.HasPrefix(err.Error(), name+": ") {
		err = fmt.Errorf("%s: %w", name, err)
	}
	c.unread = append(c.unread, err)
	reason := strings.TrimPrefix(err.Error(), name+": ")
	c.addUnresolved(bundle.Unresolved{Element: path.Base(name), Place: bundle.Place{File: name}, Reason: "not read: " + reason})
}

// Progress is how far the reading of an input is.
type Progress struct {
	File       string // that is read
	Member     string // of an archive
	Read, Size int64  // bytes of File
}

func (c *collector) reportProgress(read int64) {
	if c.onProgress != nil {
		c.progress.Read = read
		c.onProgress(c.progress)
	}
}

// unpackedFolder is the folder in which an asar's files are that do not stand in it.
func unpackedFolder(name string) (string, bool) {
	dir := name + ".unpacked"
	info, err := os.Lstat(dir)
	return dir, err == nil && info.IsDir() && strings.EqualFold(path.Ext(name), ".asar")
}

// isMedia says whether a file is, by its name, of a kind that holds no
// definitions and is often large.
func isMedia(name string) bool {
	return slices.Contains([]string{
		".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".ico", ".icns", ".bmp", ".svg", ".mp3", ".mp4", ".webm", ".ogg", ".wav", ".flac", ".mov", ".avi",
		".woff", ".woff2", ".ttf", ".otf", ".eot", ".pdf", ".map",
	}, strings.ToLower(path.Ext(name)))
}
