package share

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"unwire/captures/formats"
	"unwire/captures/objectstore"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
)

// An exportUpload copies a finished export to an object store. The methods of a nil exportUpload do
// nothing.
type exportUpload struct {
	// store is the object store, and prefix the beginning of the keys of all objects.
	store objectstore.Store

	// prefix is the beginning of the keys of all uploaded objects.
	prefix string

	// dir is a temporary folder.
	dir string

	// file is the path in dir to which the export is written if -o is not given.
	file string
}

// openUpload opens the object store of --upload; nil if the flag is not set. name is the exported
// capture.
func (f *exportFlags) openUpload(name string, e *formats.Exporter) (*exportUpload, error) {
	switch {
	case f.upload == "":
		return nil, nil
	case f.asRecorded:
		return nil, app.Usagef("--upload and --as-recorded cannot be used together: only redacted data is uploaded")
	case f.out == "-":
		return nil, app.Usagef("--upload and -o - cannot be used together")
	}
	s, prefix, err := f.objects.Open(f.upload)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "unwire-export-")
	if err != nil {
		return nil, err
	}
	base := filepath.Base(query.ParseAddress(name).File)
	file := filepath.Join(dir, strings.TrimSuffix(base, filepath.Ext(base)))
	if !e.IsFolder() {
		file += "." + e.Name
	}
	return &exportUpload{store: s, prefix: strings.TrimSuffix(prefix, "/"), dir: dir, file: file}, nil
}

// send uploads the export at out: one file, or all files of a folder.
func (u *exportUpload) send(ctx context.Context, a *app.App, out string) error {
	if u == nil {
		return nil
	}
	base := filepath.Base(filepath.Clean(out))
	return filepath.WalkDir(out, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(out, name)
		if err != nil {
			return err
		}
		key := path.Join(u.prefix, base, filepath.ToSlash(rel))
		if err := u.sendFile(ctx, name, key); err != nil {
			return err
		}
		a.Say("unwire: uploaded %s", u.store.URL(key))
		return nil
	})
}

// sendFile uploads one file under a key.
func (u *exportUpload) sendFile(ctx context.Context, name, key string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil {
		err = u.store.Put(ctx, key, file, info.Size())
	}
	return errors.Join(err, file.Close())
}

// shown returns the name of the export for messages: the URL of the upload if out is the temporary file,
// and otherwise out.
func (u *exportUpload) shown(out string) string {
	if u != nil && out == u.file {
		return u.store.URL(path.Join(u.prefix, filepath.Base(out)))
	}
	return out
}

// close deletes the temporary folder.
func (u *exportUpload) close() {
	if u != nil {
		_ = os.RemoveAll(u.dir)
	}
}
