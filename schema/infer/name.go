package infer

import (
	"fmt"
	"strings"
)

// MaxName is the length in bytes to which names that come from URLs and files are truncated.
const MaxName = 200

// cleanName converts s to an identifier: other characters become underscores.
func cleanName(s string) string {
	var b strings.Builder
	for _, r := range s[:min(len(s), MaxName)] {
		if isLetter(r) || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	name := b.String()
	if name == "" || !isLetter(rune(name[0])) {
		return "M" + name
	}
	return name
}

// isLetter reports whether r may begin an identifier.
func isLetter(r rune) bool { return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// cleanPackage converts s to a package name, each part of which is an identifier.
func cleanPackage(s string) string {
	if s == "" {
		return ""
	}
	parts := strings.Split(s[:min(len(s), MaxName)], ".")
	for i := range parts {
		parts[i] = cleanName(parts[i])
	}
	return strings.Join(parts, ".")
}

// UpperFirst returns s with its first byte in upper case. s must not be empty.
func UpperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// uniqueName reserves and returns a name that is not in use in the package: name itself, or name with a number
// appended.
func (p *filePlan) uniqueName(name string) string {
	// A message with the name of the package's first part would hide the package.
	first, _, _ := strings.Cut(p.pkg, ".")
	free := name
	for i := 2; p.claimed[free] || free == first || p.packages[strings.TrimPrefix(p.pkg+"."+free, ".")]; i++ {
		free = fmt.Sprintf("%s_%d", name, i)
	}
	p.claimed[free] = true
	return free
}
