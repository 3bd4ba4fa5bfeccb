package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"unwire/captures/objectstore"
)

// A Manifest is the content of manifest.json in the output: which results were computed from which segments.
type Manifest struct {
	// V is the version of the manifest's format, always 1.
	V int `json:"v"`
	// Definitions is the SHA-256 of the definitions against which segments were checked; "" if none were.
	Definitions string `json:"definitions"`
	// Segments are the segments that were processed, sorted by hash.
	Segments []Segment `json:"segments"`
	// Shards are the evidence files, sorted by key.
	Shards []ShardRecord `json:"shards"`

	// Findings is the number of rows in findings.parquet.
	Findings int `json:"findings"`

	// Coverage is the number of rows in coverage.parquet.
	Coverage int `json:"coverage"`

	// Changes is the number of rows in drift.jsonl.
	Changes int `json:"changes"`
	// Problems lists segments and messages that could not be read, and parts for which no definitions could be
	// inferred.
	Problems []Problem `json:"problems"`
}

// The files of the output.
const (
	// manifestName describes the other files. See Manifest.
	manifestName = "manifest.json"
	// findingsName has the findings of checking segments against definitions. See Finding.
	findingsName = "findings.parquet"
	// coverageName has how much of the messages the definitions explain. See Coverage.
	coverageName = "coverage.parquet"
	// driftName has the changes between client versions, one JSON object in each line. See history.Change.
	driftName = "drift.jsonl"
	// stagingName is the folder with the files of unfinished runs.
	stagingName = ".staging"
	// commitName is written last in a staging folder: it lists the files that belong to the run.
	commitName = "commit.json"
)

// An Output is the place of the results: a folder, or a prefix in a bucket.
//
// Evidence files of an earlier run are replaced by ones that include new segments. A run that is interrupted
// must not leave only some of them replaced, because the next run would count segments twice. So all files are
// first written to a staging folder; a file that lists them commits the run. Then they are copied to their
// places. If that is interrupted, the next run completes it.
type Output struct {
	// URL is the path of the folder, or s3://BUCKET/PREFIX.
	URL string
	// Access describes which object stores may be contacted, and how.
	Access Access
	// Run is the name of this run's staging folder.
	Run string
}

// open returns the object store and the key for a file of the output.
func (o Output) open(name string) (objectstore.Store, string, error) {
	s, prefix, err := o.Access.Open(o.URL)
	return s, path.Join(prefix, name), err
}

// read returns the content of an output file; nil if it does not exist.
func (o Output) read(ctx context.Context, name string) ([]byte, error) {
	s, key, err := o.open(name)
	if err != nil {
		return nil, err
	}
	data, err := readObject(ctx, s, key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// stage writes a file to the staging folder of this run. name is its path in the output.
func (o Output) stage(ctx context.Context, name string, data []byte) error {
	s, key, err := o.open(path.Join(stagingName, o.Run, name))
	if err != nil {
		return err
	}
	return writeObject(ctx, s, key, data)
}

// readStaged returns a file as it will be after this run: the staged file or, if this run did not write
// it, that of an earlier run.
func (o Output) readStaged(ctx context.Context, name string) ([]byte, error) {
	data, err := o.read(ctx, path.Join(stagingName, o.Run, name))
	if err == nil && data == nil {
		data, err = o.read(ctx, name)
	}
	return data, err
}

// A commit is the content of the file commitName, which makes a run's results valid.
type commit struct {
	// Remove are prefixes below which files of earlier runs are removed unless this run wrote them.
	Remove []string `json:"remove"`
}

// commit marks the staging folder as complete. remove are folders that are replaced as a whole.
func (o Output) commit(ctx context.Context, remove []string) error {
	data, err := json.Marshal(commit{remove})
	if err != nil {
		return err
	}
	return o.stage(ctx, commitName, data)
}

// Recover finishes an interrupted run that had already committed, and deletes the staging folders of
// other interrupted runs.
func (o Output) Recover(ctx context.Context) error {
	s, root, err := o.open(stagingName)
	if err != nil {
		return err
	}
	list, err := s.List(ctx, root+"/")
	if err != nil {
		return err
	}

	// Only a run with a list of its files is complete; the files of any other are removed.
	runs := map[string]bool{}
	for _, object := range list {
		run, name, _ := strings.Cut(strings.TrimPrefix(object.Key, root+"/"), "/")
		runs[run] = runs[run] || name == commitName
	}
	for run, committed := range runs {
		o.Run = run
		if committed {
			if err := o.publish(ctx); err != nil {
				return err
			}
		}
		if err := o.removeStaging(ctx); err != nil {
			return err
		}
	}
	return nil
}

// publish copies the staged files of a run to their final places. It is idempotent.
func (o Output) publish(ctx context.Context) error {
	s, staging, err := o.open(path.Join(stagingName, o.Run))
	if err != nil {
		return err
	}
	data, err := readObject(ctx, s, path.Join(staging, commitName))
	if err != nil {
		return err
	}
	var c commit
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("%s: %w", s.URL(path.Join(staging, commitName)), err)
	}
	list, err := s.List(ctx, staging+"/")
	if err != nil {
		return err
	}
	_, root, err := o.open("")
	if err != nil {
		return err
	}

	// Nothing is removed before all files are in their places.
	written := map[string]bool{}
	// The manifest is last: what it lists is in its place.
	slices.SortStableFunc(list, func(a, b objectstore.Object) int {
		return strings.Compare(lastIfManifest(a.Key), lastIfManifest(b.Key))
	})
	for _, object := range list {
		name := strings.TrimPrefix(object.Key, staging+"/")
		if name == commitName {
			continue
		}
		data, err := readObject(ctx, s, object.Key)
		if err != nil {
			return err
		}
		key := path.Join(root, name)
		if err := writeObject(ctx, s, key, data); err != nil {
			return err
		}
		written[key] = true
	}

	// A replaced folder may have files of an earlier run that this run did not write.
	for _, prefix := range c.Remove {
		old, err := s.List(ctx, path.Join(root, prefix)+"/")
		if err != nil {
			return err
		}
		for _, object := range old {
			if !written[object.Key] {
				if err := s.Remove(ctx, object.Key); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// lastIfManifest returns a key for sorting in which the manifest comes after all other files.
func lastIfManifest(key string) string {
	if path.Base(key) == manifestName {
		return "1"
	}
	return "0" + key
}

// removeStaging removes the staging folder. The commit file is removed last, so that an interrupted removal is
// repeated.
func (o Output) removeStaging(ctx context.Context) error {
	s, staging, err := o.open(path.Join(stagingName, o.Run))
	if err != nil {
		return err
	}
	list, err := s.List(ctx, staging+"/")
	if err != nil {
		return err
	}
	for _, object := range list {
		if path.Base(object.Key) != commitName {
			if err := s.Remove(ctx, object.Key); err != nil {
				return err
			}
		}
	}
	if err := s.Remove(ctx, path.Join(staging, commitName)); err != nil {
		return err
	}
	removeEmptyFolders(s, staging)
	return nil
}

// manifest reads manifest.json from the output; it returns an empty manifest if there is none.
func (o Output) manifest(ctx context.Context) (*Manifest, error) {
	data, err := o.read(ctx, manifestName)
	if err != nil {
		return nil, err
	}
	m := new(Manifest)
	if data == nil {
		m.V = 1
		return m, nil
	}
	if err := json.Unmarshal(data, m); err != nil || m.V != 1 {
		return nil, errors.Join(fmt.Errorf("%s/%s is not a manifest of this version: choose another folder for the results", o.URL, manifestName), err)
	}
	return m, nil
}

// readRows reads the rows of a Parquet file of the output; none if it does not exist.
func readRows[T any](ctx context.Context, o Output, name string) ([]T, error) {
	data, err := o.read(ctx, name)
	if err != nil || data == nil {
		return nil, err
	}
	rows, err := parquet.Read[T](bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w", o.URL, name, err)
	}
	return rows, nil
}

// stageRows writes rows as a Parquet file to the staging folder.
func stageRows[T any](ctx context.Context, o Output, name string, rows []T) error {
	var b bytes.Buffer
	if err := parquet.Write(&b, rows, parquet.Compression(&parquet.Zstd)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return o.stage(ctx, name, b.Bytes())
}
