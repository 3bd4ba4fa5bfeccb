package schemacmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"unwire/captures/objectstore"
	"unwire/cmd/internal/app"
	"unwire/schema/infer"
)

// expandPatterns replaces patterns with * or ? for files and for objects, such as
// s3://BUCKET/evidence/*.pb, by the names that match. If a file with the pattern as its name exists, that
// file is used.
func expandPatterns(ctx context.Context, objects *app.ObjectStore, inputs []string) ([]string, error) {
	var names []string
	for _, in := range inputs {
		if !isPattern(in) {
			names = append(names, in)
			continue
		}
		s, key, err := objects.Open(in)
		if err != nil {
			return nil, err
		}
		list, err := objectstore.Match(ctx, s, key)
		if err != nil {
			return nil, err
		}
		for _, o := range list {
			names = append(names, s.URL(o.Key))
		}
		if len(list) == 0 {
			return nil, app.Fail(app.ExitInput, fmt.Errorf("the pattern %s matches no file", in), "")
		}
	}
	return names, nil
}

// isPattern reports whether an input must be expanded by expandPatterns: it is a URL of an object store,
// or a pattern and not an existing file.
func isPattern(in string) bool {
	if objectstore.IsURL(in) {
		return true
	}
	if !strings.ContainsAny(in, "*?") {
		return false
	}
	_, err := os.Lstat(in)
	return errors.Is(err, os.ErrNotExist)
}

// readEvidence reads an evidence file of 'schema infer' from a local file or an object store. It returns
// nil if the local file is something else.
func readEvidence(ctx context.Context, objects *app.ObjectStore, name string) (*infer.Evidence, error) {
	if !objectstore.IsURL(name) {
		return readEvidenceFile(name)
	}
	s, key, err := objects.Open(name)
	if err != nil {
		return nil, err
	}
	r, err := s.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	ev, err := infer.ReadEvidence(r)
	if err != nil {
		return nil, app.Fail(app.ExitInput, fmt.Errorf("%s: %w", name, err), "unwire reads only evidence from object stores: copy captures to this machine first")
	}
	return ev, nil
}

// localInputs returns the inputs that are not in an object store.
func localInputs(inputs []string) (names []string) {
	for _, in := range inputs {
		if !objectstore.IsURL(in) {
			names = append(names, in)
		}
	}
	return names
}
