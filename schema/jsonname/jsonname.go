// Package jsonname derives the JSON names of protobuf fields from their names in .proto files.
//
// jsonname.Of("user_id") // userId
package jsonname

// Of returns the default JSON name, in lowerCamelCase, of the field with the given name, as protoc derives it.
// A name that consists of underscores only gives "".
//
// Source: https://protobuf.dev/programming-guides/json/
func Of(field string) string {
	out := make([]byte, 0, len(field))
	up := false
	for _, c := range []byte(field) {
		if c == '_' {
			up = true
			continue
		}
		if up && 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		out, up = append(out, c), false
	}
	return string(out)
}
