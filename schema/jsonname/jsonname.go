// Package jsonname has the rule for the names that fields have in JSON.
package jsonname

// Of is the JSON name of a field that none is given for: lowerCamelCase, as
// protoc makes it. It is "" of underscores alone.
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
