package transcript

import "unwire/decode/jsontree"

// A jsonObject maps the names of a JSON object's members to their values. If a name
// occurs several times, the last member counts.
type jsonObject map[string]jsonValue

// A jsonValue is a JSON value, or an object that was parsed from a string that contains
// JSON.
type jsonValue struct {
	// Value is the JSON value; unset if opened is set.
	jsontree.Value

	// opened is the object parsed from a string; nil for every other value.
	opened jsonObject
}

// Kind returns the value's kind. A string that was parsed as an object counts as an
// object.
func (v jsonValue) Kind() jsontree.Kind {
	if v.opened != nil {
		return jsontree.Object
	}
	return v.Value.Kind()
}

// members returns the members of an object by name.
func (v jsonValue) members() jsonObject {
	if v.opened != nil {
		return v.opened
	}
	return membersOf(v.Value)
}

// membersOf returns the members of an object by name.
func membersOf(v jsontree.Value) jsonObject {
	o := make(jsonObject)
	for m := range v.Items() {
		o[m.Name()] = jsonValue{Value: m}
	}
	return o
}

// string returns the text of a string; ok is false for any other value.
func (v jsonValue) string() (s string, ok bool) {
	if v.Kind() != jsontree.String {
		return "", false
	}
	return v.Text(), true
}

// parseJSON parses data that consists of one JSON object or array. ok is false if
// anything follows the value, even white space.
func parseJSON(data []byte) (jsonValue, bool) {
	root, err := jsontree.Parse(data)
	if err != nil {
		return jsonValue{}, false
	}
	_, end := root.Span()
	isContainer := root.Kind() == jsontree.Object || root.Kind() == jsontree.Array
	return jsonValue{Value: root}, isContainer && end == len(data)
}

// parseObject parses data that consists of one JSON object. ok is false for anything else.
func parseObject(data []byte) (jsonObject, bool) {
	v, ok := parseJSON(data)
	if !ok || v.Kind() != jsontree.Object {
		return nil, false
	}
	return v.members(), true
}
