package app

import (
	"io/fs"
	"slices"
	"strings"
)

// libraries are the packages whose errors begin with their names. Formats of files, such as
// har and pcapng, are not among them: their names say something to a user.
var libraries = []string{
	"agent", "align", "archive", "bundle", "captures", "chain", "clientprobe", "credential", "decode", "envelope", "extract", "gateway", "history",
	"infer", "jsontree", "kind", "launch", "messages", "mitm", "mock", "nested", "objectstore", "probe", "process", "protostruct", "redact", "replay", "schema", "standin",
	"store", "suite", "text", "transcript", "trust", "update", "value", "wire",
}

// plainText returns the text of an error without the prefixes of the packages that wrapped it, which
// mean nothing to a user. Text from elsewhere, such as a server's message, is unchanged, unless it is
// the whole text of an error that begins like one of unwire's.
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

// withoutRepeats removes the lines of a text that an earlier line ends with: when writing
// fails, closing the file often fails for the same reason.
func withoutRepeats(text string) string {
	var kept []string
	for line := range strings.SplitSeq(text, "\n") {
		if !slices.ContainsFunc(kept, func(k string) bool { return strings.HasSuffix(k, line) }) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
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
