package extract

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"
)

// unreadable are formats that may contain definitions but are not supported. They are recognized by their first
// bytes (magic) or extension (ext); what tells the user how to unpack them.
var unreadable = [...]struct{ magic, ext, what string }{
	{magic: "\xed\xab\xee\xdb", what: "an RPM package, to be unpacked first: rpm2cpio FILE | cpio -id"},
	{magic: "xar!", what: "a macOS installer package, to be unpacked first: pkgutil --expand-full FILE DIR"},
	{ext: ".dmg", what: "a macOS disk image, to be mounted first, or unpacked: 7z x FILE"},
	{magic: "7z\xbc\xaf\x27\x1c", what: "a 7z archive, to be unpacked first: 7z x FILE"},
	{magic: "dex\n03", what: "Android bytecode, to be made a jar first: d2j-dex2jar FILE"},
	{ext: ".jsc", what: "V8 bytecode, which does not contain the source code"},
}

// unread returns the format of unsupported files. Reading such a file returns an error that names the tool
// which unpacks it.
func unread() format {
	find := func(name string, head []byte) int {
		for i, p := range unreadable {
			if p.magic != "" && bytes.HasPrefix(head, []byte(p.magic)) || p.ext != "" && strings.ToLower(path.Ext(name)) == p.ext {
				return i
			}
		}
		return -1
	}
	return format{
		Max:    maxArchive,
		Mapped: true,
		Match:  func(name string, head []byte) bool { return find(name, head) >= 0 },
		Read: func(_ context.Context, _ *collector, name string, data []byte) error {
			p := unreadable[find(name, data[:min(len(data), headBytes)])]
			return fmt.Errorf("%s: %s", name, p.what)
		},
	}
}
