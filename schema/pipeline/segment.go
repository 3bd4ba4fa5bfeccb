package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"unwire/captures/objectstore"
	"unwire/captures/upload"
)

// A segmentRef is the location of a segment (of a recording) to be read. Beam sends it between workers as JSON.
type segmentRef struct {
	// URL is the path or URL of the segment.
	URL string `json:"url"`
	// SHA256 is the hash of the content in hex, from the segment's manifest; "" if it has no manifest.
	SHA256 string `json:"sha256,omitempty"`
	// Size is the size of the segment in bytes.
	Size int64 `json:"size"`
}

// listSegments returns the segments that patterns match. If a segment has a manifest file next to it, the hash
// in it is used.
func listSegments(ctx context.Context, patterns []string, a Access) ([]segmentRef, error) {
	var list []segmentRef
	for _, pattern := range patterns {
		s, key, err := a.Open(pattern)
		if err != nil {
			return nil, err
		}
		objects, err := objectstore.Match(ctx, s, key)
		if err != nil {
			return nil, err
		}
		found := len(list)
		manifests := map[string]bool{}
		for _, o := range objects {
			manifests[o.Key] = path.Ext(o.Key) == ".json"
		}
		for _, o := range objects {
			if path.Ext(o.Key) != ".uwc" {
				continue
			}
			ref := segmentRef{URL: s.URL(o.Key), Size: o.Size}
			// The name of an uploaded segment is its hash.
			base := strings.TrimSuffix(o.Key, ".uwc")
			if manifests[base+".json"] {
				if ref.SHA256, err = manifestHash(ctx, s, base); err != nil {
					return nil, err
				}
			}
			list = append(list, ref)
		}

		// A pattern without a match is probably mistyped.
		if len(list) == found {
			return nil, fmt.Errorf("%s matches no segment (*.uwc)", pattern)
		}
	}
	return list, nil
}

// manifestHash returns the hash in the manifest of a segment with the key base (without extension); "" if that
// object is not a manifest.
func manifestHash(ctx context.Context, s objectstore.Store, base string) (string, error) {
	data, err := readObject(ctx, s, base+".json")
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	m, err := upload.ParseManifest(data)
	if err != nil || m.SHA256 != path.Base(base) {
		return "", nil
	}
	return m.SHA256, nil
}

// identifyFn is the Beam stage that computes the hashes of segments.
type identifyFn struct {
	// Access describes how to connect to object stores.
	Access Access
	// Done are the hashes of segments that need not be read again, sorted.
	Done []string
}

// ProcessElement emits a segment (a segmentRef as JSON) with its hash as the key, unless an earlier run has
// processed it.
func (f *identifyFn) ProcessElement(ctx context.Context, element []byte, emit func(string, []byte)) error {
	var ref segmentRef
	if err := json.Unmarshal(element, &ref); err != nil {
		return err
	}
	// A name without a hash is identified by its content, so that copies are read once.
	if ref.SHA256 == "" {
		s, key, err := f.Access.Open(ref.URL)
		if err != nil {
			return err
		}
		r, err := s.Open(ctx, key)
		if err != nil {
			return err
		}
		defer r.Close()
		h := sha256.New()
		if _, err := io.Copy(h, r); err != nil {
			return fmt.Errorf("%s: %w", ref.URL, err)
		}
		ref.SHA256 = hex.EncodeToString(h.Sum(nil))
		if element, err = json.Marshal(ref); err != nil {
			return err
		}
	}
	if _, done := slices.BinarySearch(f.Done, ref.SHA256); !done {
		emit(ref.SHA256, element)
	}
	return nil
}

// fetch returns the path of a local file with the content of a segment: the file itself, or a temporary copy of
// the object. The caller must call remove in the end.
//
// Errors: the object cannot be read, or its content is not what its hash says.
func fetch(ctx context.Context, a Access, ref segmentRef) (file string, remove func(), err error) {
	remove = func() {}
	if name := strings.TrimPrefix(ref.URL, "file://"); !objectstore.IsURL(ref.URL) || name != ref.URL {
		return name, remove, nil
	}
	s, key, err := a.Open(ref.URL)
	if err != nil {
		return "", remove, err
	}
	r, err := s.Open(ctx, key)
	if err != nil {
		return "", remove, err
	}
	defer r.Close()
	dir, err := os.MkdirTemp("", "unwire-segment-")
	if err != nil {
		return "", remove, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	file = path.Join(dir, "segment.uwc")
	if err := download(file, r, sha256.New(), ref); err != nil {
		remove()
		return "", func() {}, fmt.Errorf("%s: %w", ref.URL, err)
	}
	return file, remove, nil
}

// download copies a segment from r to a local file, and verifies its hash.
func download(file string, r io.Reader, h hash.Hash, ref segmentRef) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.MultiWriter(out, h), r)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != ref.SHA256 {
		return fmt.Errorf("%w: its SHA-256 is %s, want %s", objectstore.ErrIntegrity, got, ref.SHA256)
	}
	return nil
}
