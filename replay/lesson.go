package replay

import (
	"reflect"
	"regexp"

	"unwire/decode/diff"
	"unwire/replay/edit"
)

// Reasons for which a change does not count after Learn.
const (
	// two unedited requests got different values there
	ignoredLearnt   = "learnt"
	ignoredUnedited = "unedited" // the unedited request gets this value, too
)

// A Lesson is what differs in the answers to a request that was not edited.
type Lesson struct {
	volatile map[string]bool          // by path, without indexes
	steady   map[string][]diff.Change // from the capture, by path
}

// frameNumber is that of a frame in a change's path.
var frameNumber = regexp.MustCompile(`^@(up|down)/[0-9]+`)

// placeless is a change's path without the numbers of frames and elements.
func placeless(path string) string {
	path = frameNumber.ReplaceAllString(path, "@$1")
	if len(path) > 0 && path[0] == '@' {
		for i := range path {
			if path[i] == ' ' {
				return path[:i+1] + edit.WithoutIndexes(path[i+1:])
			}
		}
	}
	return path
}

// ignore marks what the edit did not do.
func (l *Lesson) ignore(changes []diff.Change) {
	if l == nil {
		return
	}
	for i := range changes {
		c := &changes[i]
		if c.Ignored != "" {
			continue
		}
		path := placeless(c.Path)
		if l.volatile[path] {
			c.Ignored = ignoredLearnt
			continue
		}
		for _, s := range l.steady[path] {
			if s.Op == c.Op && reflect.DeepEqual(s.New, c.New) && reflect.DeepEqual(s.Old, c.Old) {
				c.Ignored = ignoredUnedited
			}
		}
	}
}
