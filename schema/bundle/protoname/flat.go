package protoname

import "strings"

// Folded returns a name in lower case and without dots and underscores, to compare names that code generators
// changed.
func Folded(name string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r == '.' || r == '_' {
			return -1
		}
		return r
	}, name))
}

// Nested converts pkg.Outer_Inner to pkg.Outer.Inner if pkg.Outer is one of names, the full names of messages.
func Nested(full string, names map[string]bool) string {
	out := full
	for i := len(Package(full)) + 1; i < len(full); i++ {
		if full[i] == '_' && names[full[:i]] {
			out = out[:i] + "." + out[i+1:]
		}
	}
	return out
}

// PackageIn splits the package off full if the rest is the same name as word in other spelling: "pkg" for
// pkg.Foo3_6.Bar and Foo36_Bar. ok is false if word differs, or has the same spelling.
func PackageIn(full, word string) (pkg string, ok bool) {
	for at := len(full); at > 0 && len(word) > 0; {
		at = strings.LastIndexByte(full[:at], '.')
		if Folded(full[at+1:]) == Folded(word) {
			return full[:max(at, 0)], !strings.HasSuffix(full, word)
		}
	}
	return "", false
}

// Unflatten replaces the name of the outer message in a full name by the one in words: pkg.Foo36_Bar becomes
// pkg.Foo3_6.Bar if words maps pkg.Foo36 to pkg.Foo3_6.
func Unflatten(full string, words map[string]string) string {
	for at := strings.LastIndexByte(full, '_'); at > 0; at = strings.LastIndexByte(full[:at], '_') {
		if outer := words[full[:at]]; outer != "" {
			return outer + "." + full[at+1:]
		}
	}
	return full
}
