package archive

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// The layout of an ar archive, which begins with arMagic. Each member has a header followed by its content.
const (
	// arMagic are the first bytes of an ar archive.
	arMagic = "!<arch>\n"
	// arHeader is the size in bytes of a member's header: name 16, date 12, owner 6, group 6, mode 8, size 10,
	// end 2.
	arHeader = 60
)

// ar reads the members of an ar archive, such as a Debian package or a library.
//
// Source: ar(5)
func (w *walk) ar(data []byte) error {
	// The GNU variant stores names that are too long for a header in a member of their own.
	names := ""
	for at := len(arMagic); at < len(data); {
		if err := w.begin(); err != nil {
			return err
		}
		if len(data)-at < arHeader || string(data[at+58:at+60]) != "`\n" {
			return fmt.Errorf("the header at %#x is missing", at)
		}
		field := func(from, to int) string { return strings.TrimRight(string(data[at+from:at+to]), " ") }
		size, err := strconv.ParseInt(field(48, 58), 10, 64)
		begin := at + arHeader
		if err != nil || size < 0 || size > int64(len(data)-begin) {
			return fmt.Errorf("the member at %#x has the size %q, but only %d bytes are left", at, field(48, 58), len(data)-begin)
		}

		name, body := field(0, 16), data[begin:begin+int(size):begin+int(size)]
		switch {
		case name == "//":
			names = string(body)
		case name == "/" || name == "/SYM64/" || name == "__.SYMDEF":
		default:
			name, body = arName(name, names, body)
			if err := w.plain(name, body); err != nil {
				return err
			}
		}

		// Members begin at even offsets.
		at = begin + int(size) + int(size&1)
		w.At(int64(min(at, len(data))))
	}
	return nil
}

// arName returns the name and the content of a member whose header has name. A long name is in the archive's
// table names (GNU), or precedes the content in body (BSD).
func arName(name, names string, body []byte) (string, []byte) {
	if n, err := strconv.Atoi(strings.TrimPrefix(name, "#1/")); err == nil && strings.HasPrefix(name, "#1/") && n >= 0 && n <= len(body) {
		return string(bytes.TrimRight(body[:n], "\x00")), body[n:]
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(name, "/")); err == nil && strings.HasPrefix(name, "/") && n >= 0 && n < len(names) {
		long, _, _ := strings.Cut(names[n:], "\n")
		return strings.TrimSuffix(long, "/"), body
	}
	return strings.TrimSuffix(name, "/"), body
}
