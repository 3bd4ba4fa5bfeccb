package bundle

import (
	"slices"
	"strings"
)

// restoreSnakeCase gives a message's fields the names that its .proto file has: codegens
// write foo_bar as fooBar. Where a name has what no foo_bar becomes, its author
// writes fooBar, and all fields of the message stay as they are.
func (m *message) restoreSnakeCase() {
	kept := slices.ContainsFunc(m.fields, func(f *field) bool { return keepsCase(f.name) })
	for _, f := range m.fields {
		f.oneof = snake(f.oneof)
		if !kept {
			f.name = snake(f.name)
		}
	}
}

// keepsCase says whether a name is none that comes of lower_snake_case:
// accountID, Foo, FOO_BAR. isATest is one, of is_a_test.
func keepsCase(name string) bool {
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
		end := i
		for end < len(name) && isUpper(name[end]) {
			end++
		}
		word := name[i:end]
		// the last begins the next word
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

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

// isAcronym says whether people write a word in capitals. That a name has its
// letters as words of one letter each is less likely.
func isAcronym(word string) bool {
	if len(word) < 2 {
		return false
	}
	const known = " ID IDS URL URLS URI URIS UUID GUID API HTTP HTTPS IP TTL SHA JSON XML HTML CSS DNS TLS SSL SSH CPU GPU RAM OS VM DB SQL" +
		" UTC AWS GCP CA RPC OK UI URN PID PNG PDF CSV HMAC RSA JWT MAC NFT EVM TCP UDP IO MB GB KB MS UTF ASCII DID PEM QR SMS USB USD "
	return strings.Contains(known, " "+word+" ")
}
