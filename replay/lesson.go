package replay

import (
	"reflect"
	"regexp"
	"sync"

	"unwire/decode/diff"
	"unwire/replay/edit"
)

// Reasons for ignoring a change after Learn.
const (
	// ignoredLearnt: two unedited requests got different values there
	ignoredLearnt = "learnt"
	// ignoredUnedited: the unedited request gets this value too
	ignoredUnedited = "unedited"
)

// A Lesson records how responses to the same unedited request differ from each other and from the
// capture. Learn determines it; differences that occur without any edit are then ignored in the
// response to the edited request.
type Lesson struct {
	// volatile has the paths, without indexes, of values that differed between two unedited requests.
	volatile map[string]bool
	// steady are the differences from the captured response that both unedited requests had, by path
	// without indexes.
	steady map[string][]diff.Change
}

// frameNumber matches the frame at the beginning of a change's path, such as "@down/3".
var frameNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^@(up|down)/[0-9]+`) })

// placeless returns a change's path without the numbers of the frame and of elements of lists, so that
// the same field of all frames has one path.
func placeless(path string) string {
	path = frameNumber().ReplaceAllString(path, "@$1")
	if len(path) > 0 && path[0] == '@' {
		for i := range path {
			if path[i] == ' ' {
				return path[:i+1] + edit.WithoutIndexes(path[i+1:])
			}
		}
	}
	return path
}

// ignore sets Ignored in those changes that also occurred without the edit. l may be nil.
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
