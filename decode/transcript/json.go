package transcript

import "unwire/decode/jsontree"

// A jsonObject has the members of a JSON object by their names; of members with
// one name it has the last.
type jsonObject map[string]jsonValue

// A jsonValue is a JSON value, or the object that a string of JSON was opened to.
type jsonValue struct {
	jsontree.Value            // unset for an opened object
	opened         jsonObject // nil for all other values
}

// Kind returns the value's kind. An opened string is an object.
func (v jsonValue) Kind() jsontree.Kind {
	if v.opened != nil {
		return jsontree.Object
	}
	return v.Value.Kind()
}

// members returns the members of an object.
func (v jsonValue) members() jsonObject {
	if v.opened != nil {
		return v.opened
	}
	return membersOf(v.Value)
}

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

// parseJSON reads a JSON object or array that nothing follows, not even space.
func parseJSON(data []byte) (jsonValue, bool) {
	root, err := jsontree.Parse(data)
	if err != nil {
		return jsonValue{}, false
	}
	_, end := root.Span()
	isContainer := root.Kind() == jsontree.Object || root.Kind() == jsontree.Array
	return jsonValue{Value: root}, isContainer && end == len(data)
}

// parseObject is parseJSON for an object.
func parseObject(data []byte) (jsonObject, bool) {
	v, ok := parseJSON(data)
	if !ok || v.Kind() != jsontree.Object {
		return nil, false
	}
	return v.members(), true
}
