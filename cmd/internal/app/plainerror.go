package app

import (
	"io/fs"
	"strings"
)

// libraries are the packages whose errors begin with their names. Formats of files, such as
// har and pcapng, are not among them: their names say something to a user.
var libraries = []string{
	"agent", "align", "archive", "bundle", "captures", "chain", "credential", "decode", "envelope", "extract", "gateway", "history",
	"infer", "jsontree", "kind", "launch", "messages", "mitm", "nested", "probe", "process", "redact", "replay", "schema", "standin",
	"store", "suite", "text", "transcript", "trust", "update", "value", "wire",
}

// plainText is the text of an error without the names of the packages that it came through,
// which mean nothing to a user. What others have said, such as a server, stays as it is,
// unless it is the whole text of an error that begins like ours.
func plainText(err error) string {
	text := err.Error()
	var causes []error
	switch e := err.(type) {
	case *fs.PathError:
		// That a file was looked for is clear without the name of the system call.
		if e.Op == "open" || e.Op == "stat" || e.Op == "lstat" {
			return e.Path + ": " + e.Err.Error()
		}
	case interface{ Unwrap() error }:
		causes = []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		causes = e.Unwrap()
	}
	out, rest := "", text
	for _, cause := range causes {
		if cause == nil || cause.Error() == "" {
			continue
		}
		before, after, found := strings.Cut(rest, cause.Error())
		if !found {
			continue
		}
		out += before + plainText(cause)
		rest = after
	}
	return withoutLibrary(out + rest)
}

// withoutLibrary removes the names of libraries that a text begins with.
func withoutLibrary(text string) string {
	for {
		name, rest, found := strings.Cut(text, ": ")
		if !found || rest == "" || !isLibrary(name) {
			return text
		}
		text = rest
	}
}

func isLibrary(name string) bool {
	for _, l := range libraries {
		if name == l {
			return true
		}
	}
	return false
}
