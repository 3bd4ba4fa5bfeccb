package callshape

import (
	"strings"

	"unwire/captures"
	"unwire/decode/transcript/keyed"
	"unwire/decode/wire"
)

// A begunCall is a call that the server began with the name of the tool and an identifier. Later messages at the same
// path, with the same identifier or without one, have pieces of its arguments.
type begunCall struct {
	// piece is the call without arguments.
	piece keyed.Piece

	// path is the path of the messages.
	path string

	// args are the arguments so far, and argsPath is their path.
	args     strings.Builder
	argsPath string
}

// begin keeps the message at node i as the beginning of a call if the server sent it with nothing but the name of a tool,
// an identifier, and numbers. Otherwise it returns false.
func (f *finder) begin(i, up int32, speaker keyed.Speaker) bool {
	if f.frame.Dir != captures.Down || speaker == keyed.User || speaker == keyed.Tool || up < 0 {
		return false
	}
	s := f.shapeOf(i)
	if s.name == "" || s.id == "" || s.args != "" || s.prose || s.role || s.fields > maxBegun || f.ids[s.id] || len(f.begun) >= maxShaped {
		return false
	}
	f.begun = append(f.begun, &begunCall{path: f.tree.FieldPath(i).String(), piece: keyed.Piece{
		Frame: f.at, Event: f.at, Seq: f.frame.Seq, Dir: f.frame.Dir, Channel: keyed.Call, Name: s.name, ID: s.id, Object: true, Tier: 1,
	}})
	return true
}

// maxBegun is the maximum number of fields of a message that begins a call.
const maxBegun = 5

// proceed adds the text in the message at node i to the call that was begun at its path. It returns false if there is
// none.
func (f *finder) proceed(i int32) bool {
	path := f.tree.FieldPath(i).String()
	var texts []int32
	var c *begunCall
	for n := range f.tree.Children(i) {
		if f.tree.Node(n).Type != wire.Len {
			continue
		}
		if b := f.begunAt(path, string(f.tree.Payload(n))); b != nil {
			c = b
		} else if len(f.tree.Payload(n)) > 0 {
			texts = append(texts, n)
		}
	}
	if c == nil && f.frame.Dir == captures.Down {
		c = f.begunAt(path, "")
	}
	if c == nil || len(texts) != 1 {
		return false
	}
	c.args.Write(f.tree.Payload(texts[0]))
	c.argsPath = f.tree.FieldPath(texts[0]).String()
	return true
}

// begunAt returns the last call that was begun at a path with an identifier, or with any if id is "". It returns nil if
// there is none.
func (f *finder) begunAt(path, id string) *begunCall {
	for i := len(f.begun) - 1; i >= 0; i-- {
		if c := f.begun[i]; c.path == path && (id == "" || c.piece.ID == id) {
			return c
		}
	}
	return nil
}

// addBegun adds the calls whose arguments are complete.
func (f *finder) addBegun() {
	for _, c := range f.begun {
		args := c.args.String()
		if !isObject([]byte(args)) || len(f.out) >= maxShaped {
			continue
		}
		c.piece.Text, c.piece.Path, c.piece.Message = args, c.argsPath, len(f.out)+1
		f.out = append(f.out, c.piece)
	}
}
