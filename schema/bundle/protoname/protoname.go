// Package protoname has the rules for names in protobuf: which are valid, how full names are composed, how code
// generators change them, and which belong to protobuf itself.
//
// protoname.Snake("userName")         // user_name
// protoname.Join("chat.v1", "Send")   // chat.v1.Send
// protoname.Package("chat.v1.Send")   // chat.v1
//
// Package bundle uses it for the names that it finds in scripts.
package protoname

import (
	"strings"

	"unwire/schema/jsonname"
)

// Snake converts a camel-case name such as fooBar to foo_bar.
func Snake(name string) string {
	var out []byte
	for i, c := range []byte(name) {
		if 'A' <= c && c <= 'Z' {
			// An underscore already separates the words.
			if i > 0 && name[i-1] != '_' {
				out = append(out, '_')
			}
			c += 'a' - 'A'
		}
		out = append(out, c)
	}
	return string(out)
}

// KeepsCase reports whether name is not the result of converting lower_snake_case to camel case, such as
// accountID, Foo or FOO_BAR. isATest may be one: it results from is_a_test.
func KeepsCase(name string) bool {
	if name == "" {
		return false
	}
	if isUpper(name[0]) {
		return true
	}
	for i := 1; i < len(name); i++ {
		if !isUpper(name[i]) {
			continue
		}
		if name[i-1] == '_' {
			return true
		}
		// A run of capital letters is an acronym, or words of one letter each.
		end := i
		for end < len(name) && isUpper(name[end]) {
			end++
		}
		word := name[i:end]
		// The last capital letter begins the next word.
		if rest := name[end:]; rest != "" && rest != "s" && rest[0] >= 'a' {
			word = word[:len(word)-1]
		}
		if isAcronym(word) {
			return true
		}
		i = end - 1
	}

	return false
}

// isAcronym reports whether people usually write a word in capital letters, such as ID. It is then more likely
// an acronym than a sequence of words with one letter each.
func isAcronym(word string) bool {
	if len(word) < 2 {
		return false
	}
	const known = " ID IDS URL URLS URI URIS UUID GUID API HTTP HTTPS IP TTL SHA JSON XML HTML CSS DNS TLS SSL SSH CPU GPU RAM OS VM DB SQL" +
		" UTC AWS GCP CA RPC OK UI URN PID PNG PDF CSV HMAC RSA JWT MAC NFT EVM TCP UDP IO MB GB KB MS UTF ASCII DID PEM QR SMS USB USD "
	return strings.Contains(known, " "+word+" ")
}

// isUpper reports whether c is a capital letter.
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

// Valid reports whether name is a valid protobuf identifier.
func Valid(name string) bool {
	for i, c := range []byte(name) {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// ValidFull reports whether full is a valid full name: identifiers separated by dots.
func ValidFull(full string) bool {
	for _, part := range strings.Split(full, ".") {
		if !Valid(part) {
			return false
		}
	}
	return true
}

// ValidNumber reports whether no is a valid field number: positive, below 2^29, and not in the range that
// protobuf reserves.
func ValidNumber(no int64) bool { return no > 0 && no < 1<<29 && (no < 19000 || no >= 20000) }

// Package returns a full name without its last part, i.e. the package or the enclosing message, or "".
func Package(full string) string { return full[:max(strings.LastIndexByte(full, '.'), 0)] }

// Base returns the last part of a full name, such as C of a.b.C.
func Base(full string) string { return full[strings.LastIndexByte(full, '.')+1:] }

// Join appends a name to a full name, with a dot between them. full may be empty.
func Join(full, name string) string {
	if full == "" {
		return name
	}
	return full + "." + name
}

// IsWellKnown reports whether word, such as Timestamp, is the name of a type that ships with protobuf. Scripts
// import these types from the runtime library, which may be in another file.
func IsWellKnown(word string) bool {
	switch word {
	case "FileOptions", "MessageOptions", "FieldOptions", "OneofOptions", "EnumOptions", "EnumValueOptions", "ServiceOptions",
		"MethodOptions", "ExtensionRangeOptions", "FieldDescriptorProto", "EnumDescriptorProto", "ServiceDescriptorProto",
		"MethodDescriptorProto", "OneofDescriptorProto", "EnumValueDescriptorProto", "SourceCodeInfo", "UninterpretedOption":
		return true
	case "Any", "Api", "Duration", "Empty", "FieldMask", "SourceContext", "Struct", "Value", "ListValue", "NullValue",
		"Timestamp", "DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value", "UInt32Value", "BoolValue",
		"StringValue", "BytesValue", "FileDescriptorProto", "FileDescriptorSet", "DescriptorProto", "Type":
		return true
	}
	return false
}

// IsStandard reports whether full is in google.protobuf, the package of the types that ship with protobuf.
func IsStandard(full string) bool { return strings.HasPrefix(full, "google.protobuf.") }

// MapEntry returns the name that protobuf requires for the entry type of a map field.
func MapEntry(field string) string {
	name := []byte(jsonname.Of(field))
	if len(name) > 0 && 'a' <= name[0] && name[0] <= 'z' {
		name[0] -= 'a' - 'A'
	}
	return string(name) + "Entry"
}
