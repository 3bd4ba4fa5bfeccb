package infer

import (
	"fmt"
	"strings"
)

// MaxName is the length in bytes to which a name from a URL or a file is cut.
const MaxName = 200

// cleanName makes an identifier of s: what cannot stand in one becomes an underscore.
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

func isLetter(r rune) bool { return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// cleanPackage makes a package name of s, each part an identifier.
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

// UpperFirst returns s with an upper-case first byte. s must not be empty.
func UpperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// uniqueName returns name, or name with a number where the scope has it already.
func (p *plan) uniqueName(name string) string {
	// A message named like the package's first part would hide the package.
	first, _, _ := strings.Cut(p.pkg, ".")
	free := name
	for i := 2; p.claimed[free] || free == first || p.packages[strings.TrimPrefix(p.pkg+"."+free, ".")]; i++ {
		free = fmt.Sprintf("%s_%d", name, i)
	}
	p.claimed[free] = true
	return free
}
