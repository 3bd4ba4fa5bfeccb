package clientconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"unwire/decode/jsontree"
)

// byteOrderMark is the UTF-8 byte order mark, which some Windows editors write at the beginning of files.
const byteOrderMark = "\xef\xbb\xbf"

// jsonEditor returns a Client.edit function for JSON files, which may have comments and trailing commas.
// The servers are members of the object that is called list in the root object; value returns the JSON
// value of a server.
func jsonEditor(list string, value func(Server) any) func([]byte, Server) ([]byte, error) {
	return func(old []byte, s Server) ([]byte, error) {
		mark := []byte{}
		if bytes.HasPrefix(old, []byte(byteOrderMark)) {
			mark, old = old[:len(byteOrderMark)], old[len(byteOrderMark):]
		}
		e := jsonEdit{end: lineEnd(old), indent: indentOf(old)}
		text := old
		if len(bytes.TrimSpace(old)) == 0 {
			text = []byte("{" + e.end + "}" + e.end)
		}
		out, err := e.put(text, []string{list, s.Name}, value(s))
		if err != nil {
			return nil, err
		}
		if err := checkJSON(text, out, list, s.Name); err != nil {
			return nil, err
		}
		return append(bytes.Clone(mark), out...), nil
	}
}

// A jsonEdit inserts members into a JSON text, in the style of that text.
type jsonEdit struct {
	// end is the line end.
	end string

	// indent is the indentation of one level.
	indent string
}

// indentOf returns the shortest indentation of any line in a text.
func indentOf(text []byte) string {
	indent := ""
	for line := range strings.Lines(string(text)) {
		rest := strings.TrimLeft(line, " \t")
		n := len(line) - len(rest)
		if strings.TrimSpace(rest) == "" || rest[0] == '*' || n == 0 {
			continue // also of comments, whose lines begin with a star
		}
		if indent == "" || n < len(indent) {
			indent = line[:n]
		}
	}
	if indent == "" {
		return "  "
	}
	return indent
}

// put returns a JSON text in which the member at a path of names has a value. Missing objects on the path
// are created.
func (e jsonEdit) put(text []byte, path []string, value any) ([]byte, error) {
	at, err := parseJSONC(text)
	if err != nil {
		return nil, err
	}
	for depth, name := range path {
		if at.Kind() != jsontree.Object {
			return nil, &conflictError{fmt.Sprintf("%s is %s, not an object", strings.Join(path[:depth], "."), at.Kind())}
		}
		member, count := memberOf(at, name)
		switch {
		case count > 1:
			return nil, &conflictError{fmt.Sprintf("it has %d members %q", count, name)}
		case count == 0:
			// The rest of the path does not exist either, so it becomes nested objects around the value.
			for i := len(path) - 1; i > depth; i-- {
				value = map[string]any{path[i]: value}
			}
			return e.insert(text, at, name, value, depth+1)
		case depth == len(path)-1:
			from, to := member.Span()
			new, err := e.format(value, depth+1)
			return bytes.Join([][]byte{text[:from], new, text[to:]}, nil), err
		}
		at = member
	}
	return nil, errors.New("the path of the setting is empty")
}

// memberOf returns the first member of a JSON object with a name, and the number of members with that
// name.
func memberOf(object jsontree.Value, name string) (found jsontree.Value, count int) {
	for m := range object.Items() {
		if m.Name() == name {
			if count++; count == 1 {
				found = m
			}
		}
	}
	return found, count
}

// insert returns text with a new member after the last one of an object in it. depth is the indentation
// level of the member.
func (e jsonEdit) insert(text []byte, object jsontree.Value, name string, value any, depth int) ([]byte, error) {
	new, err := e.format(value, depth)
	if err != nil {
		return nil, err
	}
	member := e.end + strings.Repeat(e.indent, depth) + string(jsontree.Quote(name)) + ": " + string(new)
	begin, end := object.Span()
	last := -1
	for m := range object.Items() {
		_, last = m.Span()
	}
	if last >= 0 {
		// A comma that follows the last member follows the new one then.
		return bytes.Join([][]byte{text[:last], []byte("," + member), text[last:]}, nil), nil
	}
	closing := ""
	if !bytes.ContainsRune(text[begin:end], '\n') {
		closing = e.end + strings.Repeat(e.indent, depth-1)
	}
	return bytes.Join([][]byte{text[:begin+1], []byte(member + closing), text[begin+1:]}, nil), nil
}

// format returns a value as JSON with the indentation and line ends of the edited text; depth is the
// indentation level.
func (e jsonEdit) format(value any, depth int) ([]byte, error) {
	var b bytes.Buffer
	j := json.NewEncoder(&b)
	j.SetEscapeHTML(false)
	j.SetIndent(strings.Repeat(e.indent, depth), e.indent)
	if err := j.Encode(value); err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(bytes.TrimSpace(b.Bytes()), []byte("\n"), []byte(e.end)), nil
}

// parseJSONC parses JSON with comments and trailing commas. Offsets in the result are offsets in text.
func parseJSONC(text []byte) (jsontree.Value, error) {
	plain, err := withoutComments(text)
	if err != nil {
		return jsontree.Value{}, &syntaxError{err}
	}
	root, err := jsontree.Parse(plain)
	if err != nil {
		return root, &syntaxError{err}
	}
	return root, nil
}

// withoutComments returns a copy of text in which comments and trailing commas are replaced by spaces, so
// that offsets stay the same.
func withoutComments(text []byte) ([]byte, error) {
	out := bytes.Clone(text)
	comma := -1 // the last one, if only space and comments follow it
	for i := 0; i < len(out); i++ {
		switch b := out[i]; {
		case b == '"':
			end := stringEnd(out, i)
			if end < 0 {
				return nil, fmt.Errorf("the string at offset %d has no end", i)
			}
			i, comma = end, -1
		case b == '/' && i+1 < len(out) && (out[i+1] == '/' || out[i+1] == '*'):
			end := commentEnd(out, i)
			if end < 0 {
				return nil, fmt.Errorf("the comment at offset %d has no end", i)
			}
			// Line ends stay, so that offsets and line numbers are those of the original text.
			for k := i; k < end; k++ {
				if out[k] != '\n' && out[k] != '\r' {
					out[k] = ' '
				}
			}
			i = end - 1
		case b == ',':
			comma = i
		case (b == '}' || b == ']') && comma >= 0:
			out[comma], comma = ' ', -1
		case b != ' ' && b != '\t' && b != '\n' && b != '\r':
			comma = -1
		}
	}
	return out, nil
}

// stringEnd returns the offset of the closing quote of the string that begins at offset at; -1 if there
// is none.
func stringEnd(text []byte, at int) int {
	for i := at + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		case '\n':
			return -1
		}
	}
	return -1
}

// commentEnd returns the offset after the comment that begins at offset at; -1 if the comment is not
// closed.
func commentEnd(text []byte, at int) int {
	if text[at+1] == '/' {
		if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
			return at + n
		}
		return len(text)
	}
	if n := bytes.Index(text[at+2:], []byte("*/")); n >= 0 {
		return at + 2 + n + 2
	}
	return -1
}

// checkJSON returns an error if two configurations differ in anything but the server called name in list.
func checkJSON(before, after []byte, list, name string) error {
	var both [2]map[string]any
	for i, text := range [][]byte{before, after} {
		plain, err := withoutComments(text)
		if err == nil {
			err = json.Unmarshal(plain, &both[i])
		}
		if err != nil {
			return &syntaxError{err}
		}
		if servers, ok := both[i][list].(map[string]any); ok {
			if delete(servers, name); len(servers) == 0 {
				delete(both[i], list)
			}
		}
	}
	if !reflect.DeepEqual(both[0], both[1]) {
		return &conflictError{"the edit would change other members"}
	}
	return nil
}
