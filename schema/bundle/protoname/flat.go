package protoname

import "strings"

// Folded returns a name without case, dots and underscores, which code generators change.
func Folded(name string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r == '.' || r == '_' {
			return -1
		}
		return r
	}, name))
}

// Nested converts pkg.Outer_Inner to pkg.Outer.Inner if Outer is a message.
func Nested(full string, names map[string]bool) string {
	out := full
	for i := len(Package(full)) + 1; i < len(full); i++ {
		if full[i] == '_' && names[full[:i]] {
			out = out[:i] + "." + out[i+1:]
		}
	}
	return out
}

// PackageIn returns the package in which a word of a script is a full name: pkg for pkg.Foo3_6.Bar and
// Foo36_Bar.
func PackageIn(full, word string) (pkg string, ok bool) {
	for at := len(full); at > 0 && len(word) > 0; {
		at = strings.LastIndexByte(full[:at], '.')
		if Folded(full[at+1:]) == Folded(word) {
			return full[:max(at, 0)], !strings.HasSuffix(full, word)
		}
	}
	return "", false
}

// Unflatten converts pkg.Foo36_Bar to pkg.Foo3_6.Bar if words maps pkg.Foo36 to pkg.Foo3_6.
func Unflatten(full string, words map[string]string) string {
	for at := strings.LastIndexByte(full, '_'); at > 0; at = strings.LastIndexByte(full[:at], '_') {
		if outer := words[full[:at]]; outer != "" {
			return outer + "." + full[at+1:]
		}
	}
	return full
}
