package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"unwire/schema"
	"unwire/schema/align"
	"unwire/schema/interrupt"
	"unwire/schema/update"
)

// A Folder is the user's folder of .proto files together with its evidence file.
type Folder struct {
	// Schema has the compiled declarations of the files.
	Schema *schema.Schema

	// texts maps the paths of files to their contents.
	texts map[string]string
	// evidence is the content of the evidence file.
	evidence string
}

// ReadFolder reads and compiles the .proto files in dir and its subfolders, and reads the evidence file.
//
// Errors: files that do not compile, or no files.
func ReadFolder(ctx context.Context, dir string) (*Folder, error) {
	// Below os.DirFS, a missing folder would be called ".".
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	texts, err := schema.ReadTexts(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("%w (in the folder %s)", err, dir)
	}
	have, err := interrupt.Run(ctx, func() (*schema.Schema, error) { return schema.FromTexts(texts) })
	if err != nil {
		return nil, fmt.Errorf("%w (in the folder %s)", err, dir)
	}
	evidence, err := readEvidence(filepath.Join(dir, update.EvidenceFile))
	if err != nil {
		return nil, err
	}
	return &Folder{Schema: have, texts: texts, evidence: string(evidence)}, nil
}

// maxEvidence is the maximum size of an evidence file in bytes.
const maxEvidence = 256 << 20

// readEvidence reads an evidence file; a missing file counts as empty.
func readEvidence(name string) ([]byte, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	data, err := io.ReadAll(io.LimitReader(f, maxEvidence+1))
	if err == nil && len(data) > maxEvidence {
		err = fmt.Errorf("%s is larger than %d MiB", name, maxEvidence>>20)
	}
	return data, err
}

// Update computes the update of the folder by sources, and then by the names that result from matching calls
// that were recorded both in protobuf and in JSON. complete, if set, is called with the source made from these
// names before it is applied.
//
// Shape: the evidence file is among the files of the result if it changes.
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
