// Package project reads unwire.yaml, in which a folder says by what its traffic is read:
//
//	definitions: proto/          # or a list; relative to the file
//	profile: none                # auto, none, or a profile's name
//	weights: weights.json        # of 'unwire chat'
//	redact:                      # in addition to the rules that unwire has
//	  headers: [x-shop-session]
//	  names: [sessionHandle]     # query parameters and JSON members
//	  keys: [{prefix: shop_, min-length: 20}]
//	  fields: [shop.v1.Session.token]
//
// The file may only tighten: what would allow hosts, send, trust a CA, keep secrets or run
// commands is refused by its name, and paths lead to what is below the file's folder.
//
// Find looks for the file from a folder upwards, and Read reads one. SchemaJSON is its JSON
// Schema. Announce says once what a file changes. Package app asks for the file of the
// working folder and hands out what it says.
package project

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"unwire/captures/profile"
)

// Name is the name of the settings file.
const Name = "unwire.yaml"

//go:embed unwire.schema.json
var schemaJSON string

// SchemaJSON returns the JSON Schema of the settings file. profiles are the valid values of its member
// profile.
func SchemaJSON(profiles []string) string {
	names, err := json.Marshal(profiles)
	if err != nil {
		panic(err) // texts can be marshalled
	}
	return strings.Replace(schemaJSON, `["PROFILES"]`, strings.ReplaceAll(string(names), ",", ", "), 1)
}

// Limits of an unwire.yaml: bytes of the file, elements of a list, bytes of a text, and the least number
// of bytes of a key's prefix (shorter ones occur by chance).
const (
	maxBytes  = 64 << 10
	maxList   = 1000
	maxText   = 256 // bytes
	minPrefix = 3   // bytes: shorter ones occur by chance
)

// A File holds the settings of an unwire.yaml.
type File struct {
	// Path is the path of the file.
	Path string

	// Digest is the SHA-256 hash of its content in hex.
	Digest string

	// Definitions are paths of definitions, joined to the file's folder.
	Definitions []string

	// Weights is the path of the weights for 'unwire chat', joined to the file's folder; "" for the
	// built-in ones.
	Weights string

	// Profile is the name of a profile, as for --profile; "" if the file does not choose one.
	Profile string

	// Secrets are rules for secrets in addition to the built-in ones.
	Secrets profile.Secrets
}

// errFile is wrapped by errors about a file's content or its permissions.
var errFile = errors.New(Name + " is invalid")

// Read reads the unwire.yaml at a path. profiles are the valid values of its member profile.
//
// Limits: 64 KiB, no YAML aliases, lists of 1,000 elements. Errors: errFile, with the line of each of up
// to ten faults.
func Read(path string, profiles []string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkOwner(path, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, err
	}
	return parse(path, data, profiles)
}

// parse parses the content of an unwire.yaml. path is for error messages, profiles are the valid
// profile names.
func parse(path string, data []byte, profiles []string) (*File, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", errFile, path, maxBytes)
	}
	sum := sha256.Sum256(data)
	p := &parser{file: &File{Path: path, Digest: hex.EncodeToString(sum[:])}, folder: filepath.Dir(path), profiles: profiles}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return p.file, nil // it says nothing
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %s", errFile, path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := d.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %s has more than one document", errFile, path)
	}
	p.document(doc.Content[0])
	if len(p.faults) > 0 {
		return nil, fmt.Errorf("%w: %w", errFile, errors.Join(p.faults...))
	}
	return p.file, nil
}

// Summary returns one line that lists the settings in the file.
func (f *File) Summary() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }

	// Names are relative to the file, as the user wrote them.
	if len(f.Definitions) > 0 {
		var names []string
		for _, name := range f.Definitions {
			if rel, err := filepath.Rel(filepath.Dir(f.Path), name); err == nil {
				name = rel
			}
			names = append(names, name)
		}
		add("definitions %s", strings.Join(names, ", "))
	}
	switch f.Profile {
	case "":
	case "none":
		add("profile none")
	default:
		add("profile %s", f.Profile)
	}
	if f.Weights != "" {
		add("weights %s", filepath.Base(f.Weights))
	}
	if n := len(f.Secrets.Headers) + len(f.Secrets.Names) + len(f.Secrets.Keys) + len(f.Secrets.Fields); n == 1 {
		add("1 additional rule for secrets")
	} else if n > 1 {
		add("%d additional rules for secrets", n)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}
