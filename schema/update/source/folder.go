package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"unwire/schema"
	"unwire/schema/align"
	"unwire/schema/interrupt"
	"unwire/schema/update"
)

// A Folder is .proto files below a folder, with the evidence of what they declare.
type Folder struct {
	// Schema is what the files declare.
	Schema *schema.Schema

	texts    map[string]string
	evidence string
}

// ReadFolder reads the files below a folder.
//
// Errors: files that do not compile; a folder without any.
func ReadFolder(ctx context.Context, dir string) (*Folder, error) {
	texts, err := schema.ReadTexts(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("%w (below %s)", err, dir)
	}
	have, err := interrupt.Run(ctx, func() (*schema.Schema, error) { return schema.FromTexts(texts) })
	if err != nil {
		return nil, fmt.Errorf("%w (below %s)", err, dir)
	}
	evidence, err := os.ReadFile(filepath.Join(dir, update.EvidenceFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &Folder{Schema: have, texts: texts, evidence: string(evidence)}, nil
}

// Update works out the update of the folder by sources, and then by the names in calls
// that were recorded in both codecs. complete completes the source that these make.
//
// Shape: the file of evidence is among the result's files where it changes.
func (f *Folder) Update(ctx context.Context, sources []update.Source, calls *align.Calls, complete func(*update.Source), o update.Options) (*update.Result, error) {
	r, err := interrupt.Run(ctx, func() (*update.Result, error) {
		r, err := update.Run(f.texts, f.evidence, sources, o)
		if err != nil {
			return nil, err
		}
		return nameByCalls(r, f.texts, calls, complete, o)
	})
	if err != nil {
		return nil, err
	}
	if r.Evidence != f.evidence {
		r.Files = append(r.Files, update.File{Name: update.EvidenceFile, Before: f.evidence, After: r.Evidence, New: f.evidence == ""})
	}
	return r, nil
}
