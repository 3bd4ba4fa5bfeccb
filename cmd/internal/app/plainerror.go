package app

import (
	"io/fs"
	"slices"
	"strings"
)

// libraries are the names of unwire's packages that begin the text of an error ("decode: …"); they are
// removed before a user sees the error. Packages named after file formats, such as har, are not listed,
// because a user understands these names.
var libraries = []string{
	"agent", "align", "archive", "bundle", "captures", "chain", "clientprobe", "credential", "decode", "envelope", "extract", "gateway", "history",
	"infer", "jsontree", "kind", "launch", "messages", "mitm", "mock", "nested", "objectstore", "probe", "process", "protostruct", "redact", "replay", "schema", "standin",
	"store", "suite", "text", "transcript", "trust", "update", "value", "wire",
}

// PlainText returns the text of an error without the names of unwire's packages at the beginning of each
// wrapped error. Texts from elsewhere, such as a server's message, are kept unchanged.
func PlainText(err error) string {
	text := err.Error()
	var causes []error
	switch e := err.(type) {
	case *fs.PathError:
		// That a file was looked for is clear without the name of the system call.
		if e.Op == "open" || e.Op == "stat" || e.Op == "lstat" {
			return e.Path + ": " + e.Err.Error()
		}
		if e.Op == "fork/exec" {
			return "cannot run " + e.Path + ": " + e.Err.Error()
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
		out += before + PlainText(cause)
		rest = after
	}
	return withoutLibrary(out + rest)
}

// withoutRepeats removes lines that repeat the end of an earlier line. When a write fails, closing the
// file often fails with the same text.
func withoutRepeats(text string) string {
	var kept []string
	for line := range strings.SplitSeq(text, "\n") {
		if !slices.ContainsFunc(kept, func(k string) bool { return strings.HasSuffix(k, line) }) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// withoutLibrary removes names of packages, such as "decode: ", from the beginning of an error text.
func withoutLibrary(text string) string {
	for {
		name, rest, found := strings.Cut(text, ": ")
		if !found || rest == "" || !isLibrary(name) {
			return text
		}
		text = rest
	}
}

// isLibrary reports whether name is in libraries.
func isLibrary(name string) bool {
	for _, l := range libraries {
		if name == l {
			return true
		}
	}
	return false
}
