package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"unwire/replay/agent/turn"
	"unwire/replay/gateway/front"
)

// An Object is a JSON object in a request, with its path for error messages.
type Object struct {
	// Path names the object in errors, such as messages.3; "" for the request itself.
	Path string
	// Members maps names to the members of the object, not decoded yet.
	Members map[string]json.RawMessage
}

// ReadObject decodes a JSON object. path names it in errors. null and an absent value give an object
// without members.
func ReadObject(raw json.RawMessage, path string) (Object, *turn.Error) {
	o := Object{Path: path}
	err := front.Member(raw, path, &o.Members)
	return o, err
}

// IsString reports whether a JSON value is a string.
func IsString(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }

// At returns the path of a member for error messages, such as messages.3.content.
func (o Object) At(name string) string {
	if o.Path == "" {
		return name
	}
	return o.Path + "." + name
}

// Has reports whether a member is present and not null.
func (o Object) Has(name string) bool {
	raw, ok := o.Members[name]
	return ok && string(raw) != "null"
}

// Read decodes the member name into v. If the member is absent or null, v is unchanged.
func (o Object) Read(name string, v any) *turn.Error {
	return front.Member(o.Members[name], o.At(name), v)
}

// Text returns a string member; "" if it is absent.
func (o Object) Text(name string) (s string, err *turn.Error) {
	err = o.Read(name, &s)
	return s, err
}

// Need returns a member that must be a string that is not empty.
func (o Object) Need(name string) (string, *turn.Error) {
	s, err := o.Text(name)
	if err == nil && s == "" {
		err = o.Invalid(name, "missing_required_parameter", "is required")
	}
	return s, err
}

// List returns an array member; nil if it is absent.
func (o Object) List(name string) (list []json.RawMessage, err *turn.Error) {
	err = o.Read(name, &list)
	return list, err
}

// Child returns a member that must be an object; without members if it is absent.
func (o Object) Child(name string) (Object, *turn.Error) {
	return ReadObject(o.Members[name], o.At(name))
}

// Invalid returns an error for the member name. Its message is the member's path followed by problem,
// such as "is required".
func (o Object) Invalid(name, code, problem string) *turn.Error {
	return invalid(o.At(name), code, problem)
}

// invalid returns an error for the value at a path. Its message is the path followed by problem.
func invalid(path, code, problem string) *turn.Error {
	return &turn.Error{Kind: turn.Invalid, Param: path, Code: code, Message: path + " " + problem}
}

// OneOf returns the error for a member with the value got, which must be one of values.
func (o Object) OneOf(name, got string, values ...string) *turn.Error {
	if got == "" {
		return o.Invalid(name, "missing_required_parameter", "is required")
	}
	return o.Invalid(name, "invalid_value", fmt.Sprintf("must be one of %s, not %.60q", strings.Join(values, ", "), got))
}

// Index returns the path of element i of the list at path, for error messages.
func Index(path string, i int) string { return path + "." + strconv.Itoa(i) }

// A Notes collects notes about parameters that had no effect, without duplicates.
type Notes struct {
	// list are the notes in the order in which they were added.
	list []string

	// seen has the notes in list.
	seen map[string]bool
}

// maxNotes limits the number of notes for one request.
const maxNotes = 100

// Add adds a note unless it was added before.
func (n *Notes) Add(note string) {
	if n.seen[note] || len(n.list) >= maxNotes {
		return
	}
	if n.seen == nil {
		n.seen = make(map[string]bool)
	}
	n.seen[note] = true
	n.list = append(n.list, note)
}

// List returns the notes in the order in which they were added.
func (n *Notes) List() []string { return slices.Clip(n.list) }

// Check applies a table of parameters to an object, and adds a note for each member without effect.
// where names all objects of its kind in notes, such as messages[]; "" for the request itself.
//
// Errors: kind Invalid for the first refused member.
func (n *Notes) Check(p front.Params, o Object, where string) *turn.Error {
	notes, err := p.Check(o.Members)
	for _, note := range notes {
		if where != "" {
			note = where + "." + note
		}
		n.Add(note)
	}
	if err != nil && o.Path != "" {
		err.Param = o.At(err.Param)
		err.Message = o.Path + "." + err.Message
	}
	return err
}
