package extract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/schema/bundle"
	"unwire/schema/embedded"
)

// scripts returns the file format for JavaScript, which is recognized by the extension.
func scripts() format {
	return format{
		Name: "JavaScript",
		Max:  bundle.MaxScript,
		Match: func(name string, _ []byte) bool {
			return slices.Contains([]string{".js", ".mjs", ".cjs"}, strings.ToLower(path.Ext(name)))
		},
		Read: func(ctx context.Context, c *collector, name string, data []byte) error {
			if isNoScript(data) {
				return fmt.Errorf("%s: the file is not JavaScript: the first bytes are not text", name)
			}
			return c.scripts.Add(ctx, name, data)
		},
	}
}

// isNoScript reports whether data is obviously binary: more than one in 20 of its first bytes are control
// characters. Bytes above 127 do not count, because scripts may have any encoding.
func isNoScript(data []byte) bool {
	const share = 20
	head := data[:min(len(data), headBytes)]
	controls := 0
	for _, c := range head {
		if c < ' ' && (c < '\t' || c > '\r') {
			controls++
		}
	}
	return controls*share > len(head)
}

// reflectionJSON returns the format of JSON files that protobufjs loads at run time: {"options": …, "nested":
// {…}}.
func reflectionJSON() format {
	return format{
		Name: "JSON of protobufjs",
		Max:  bundle.MaxScript,
		Match: func(name string, head []byte) bool {
			return strings.ToLower(path.Ext(name)) == ".json" && bytes.Contains(head, []byte(`"nested"`))
		},
		Read: scripts().Read,
	}
}

// formDescriptorSet is the name of the format of serialized FileDescriptorSets.
const formDescriptorSet = "descriptor set"

// descriptorSets returns the format of serialized FileDescriptorSets. They are recognized by their extension,
// or by their first bytes, which contain the name of a .proto file.
func descriptorSets() format {
	return format{
		Name: formDescriptorSet,
		Match: func(name string, head []byte) bool {
			if slices.Contains([]string{".binpb", ".pb", ".desc", ".protoset", ".fds"}, strings.ToLower(path.Ext(name))) {
				return true
			}
			// The first bytes are 0a LEN 0a LEN NAME.proto.
			return len(head) > 8 && head[0] == 0x0a && bytes.Contains(head[:min(len(head), 300)], []byte(".proto")) && bytes.IndexByte(head[1:8], 0x0a) > 0
		},
		Read: func(ctx context.Context, c *collector, name string, data []byte) error {
			set := &descriptorpb.FileDescriptorSet{}
			err := proto.Unmarshal(data, set)
			if err == nil && len(set.File) > 0 && !slices.ContainsFunc(set.File, func(f *descriptorpb.FileDescriptorProto) bool { return f.GetName() == "" }) {
				return c.addDescriptors(formDescriptorSet, set.File...)
			}
			// It may be a single file's descriptor, or descriptors inside something else.
			found, scanErr := embedded.Scan(ctx, data)
			if len(found) > 0 || scanErr != nil {
				return errors.Join(c.addFound(name, found), scanErr)
			}
			if err == nil && len(set.File) > 0 {
				return fmt.Errorf("%s: the file is not a descriptor set: a file descriptor in it has no name", name)
			}
			return fmt.Errorf("%s: the file is not a descriptor set: it contains no file descriptors", name)
		},
	}
}
