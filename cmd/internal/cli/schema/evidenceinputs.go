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

// expandPatterns replaces glob patterns for files and object stores, such as s3://BUCKET/evidence/*.pb,
// by the matching names. If a file has the pattern itself as its name, that file is used.
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
			return nil, app.Fail(app.ExitInput, fmt.Errorf("%s matches nothing", in), "")
		}
	}
	return names, nil
}

// isPattern reports whether an input is to be expanded: a URL, or a pattern that is no file.
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

// readEvidence reads evidence from a file or an object. Of another file it returns nil.
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
		return nil, app.Fail(app.ExitInput, fmt.Errorf("%s: %w", name, err), "only evidence is read from object stores: copy captures to this machine first")
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
