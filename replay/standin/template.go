package standin

import (
	"encoding/base64"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/replay/standin/strictjson"
	"unwire/replay/standin/walk"
)

// A template is a parsed text with placeholders such as ${prompt}.
type template []part

// A part of a template is literal text, or a placeholder: the name of a variable or of a result.
type part struct {
	// literal is the literal text; "" for a placeholder.
	literal string

	// name is the name of the variable, tool result or query response.
	name string

	// path are the fields to follow in the result.
	path []protoreflect.Name

	// summary is a key of summaries, such as "text", which is used instead of path.
	summary string
}

// A scope has the names that placeholders may use at one step of a turn.
type scope struct {
	// names are the names of the variables.
	names map[string]bool

	// results are the message types of tool results and query responses, by name.
	results map[string]protoreflect.MessageDescriptor
}

// parse parses a text with placeholders, whose names must be in the scope.
func (sc *scope) parse(text string) (template, error) {
	var t template
	for text != "" {
		before, rest, ok := strings.Cut(text, "${")
		if !ok {
			return append(t, part{literal: text}), nil
		}
		if escaped, ok := strings.CutSuffix(before, "$"); ok {
			t, text = append(t, part{literal: escaped + "${"}), rest
			continue
		}
		inside, after, ok := strings.Cut(rest, "}")
		if !ok {
			return nil, fmt.Errorf("${%s: the closing brace is missing", strictjson.Glimpse([]byte(rest)))
		}
		p, err := sc.placeholder(inside)
		if err != nil {
			return nil, fmt.Errorf("${%s}: %w", inside, err)
		}
		if before != "" {
			t = append(t, part{literal: before})
		}
		t, text = append(t, p), after
	}
	return t, nil
}

// placeholder parses the text inside ${…}.
func (sc *scope) placeholder(inside string) (part, error) {
	name, path, dotted := strings.Cut(inside, ".")
	p := part{name: name}
	// A name without a dot is a variable.
	if !dotted {
		if !sc.names[name] {
			return p, fmt.Errorf("no variable has this name")
		}
		return p, nil
	}
	md, ok := sc.results[name]
	if !ok {
		return p, fmt.Errorf("no earlier tool call has the name %q", name)
	}
	if summaries[path] != nil && md.Fields().ByName(protoreflect.Name(path)) == nil {
		p.summary = path
		return p, nil
	}

	// Follow the path through the message types, to report mistakes before the server starts.
	for segment := range strings.SplitSeq(path, ".") {
		if md == nil {
			return p, fmt.Errorf("%q is inside a value that is not a message", segment)
		}
		fd := md.Fields().ByName(protoreflect.Name(segment))
		if fd == nil {
			return p, fmt.Errorf("%s has no field %q", md.FullName(), segment)
		}
		if fd.IsList() || fd.IsMap() {
			return p, fmt.Errorf("%q is a list or a map, not a single value", segment)
		}
		md = fd.Message()
		p.path = append(p.path, fd.Name())
	}
	if md != nil {
		return p, fmt.Errorf("is a message, not a single value")
	}
	return p, nil
}

// variables are the values of placeholders during a call.
type variables struct {
	// text are the values of variables.
	text map[string]string

	// results are the tool results and query responses, by name.
	results map[string]protoreflect.Message
	// outputs are the texts of results that are not in the result message itself: the output of a shell
	// before it ended, and results from a transcript.
	outputs map[string]string
}

// expand returns the text of a template with the placeholders replaced by their values.
func (v *variables) expand(t template) string {
	var b strings.Builder
	for _, p := range t {
		switch {
		case p.name == "":
			b.WriteString(p.literal)
		case p.summary != "":
			b.WriteString(v.summarise(p))
		case p.path == nil:
			b.WriteString(v.text[p.name])
		default:
			b.WriteString(field(v.results[p.name], p.path))
		}
	}
	return b.String()
}

// summarise returns the value of a placeholder for a whole result, such as its text.
func (v *variables) summarise(p part) string {
	if output, known := v.outputs[p.name]; known && p.summary == "text" {
		return output
	}
	if m := v.results[p.name]; m != nil {
		return summaries[p.summary](m)
	}
	return ""
}

// expandText returns a text with the placeholders replaced by their values. A binder has validated the
// text.
func (v *variables) expandText(text string) (string, error) {
	sc := turnScope()
	for name, m := range v.results {
		sc.results[name] = m.Descriptor()
	}
	t, err := sc.parse(text)
	if err != nil {
		return "", err
	}
	return v.expand(t), nil
}

// expandMessage returns a copy of a message with the placeholders in its strings replaced by their
// values. A binder has validated the message.
func (v *variables) expandMessage(m *dynamicpb.Message) *dynamicpb.Message {
	m = proto.Clone(m).(*dynamicpb.Message)
	if err := walk.Strings(m, v.expandText); err != nil {
		panic("standin: a placeholder that was read once cannot be read again: " + err.Error())
	}
	return m
}

// field returns one field of a message as text; path leads to it. It is "" if a message on the path is
// not set.
func field(m protoreflect.Message, path []protoreflect.Name) string {
	if m == nil || len(path) > 1 && !has(m, path[:len(path)-1]...) {
		return ""
	}
	v := get(m, path...)
	if b, ok := v.Interface().([]byte); ok {
		return base64.StdEncoding.EncodeToString(b)
	}
	return v.String()
}
