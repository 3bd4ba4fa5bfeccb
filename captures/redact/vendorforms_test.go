package redact

import (
	_ "embed"
	"slices"
	"strings"
	"testing"
)

// vendorForms are collected from documentation. The rules come from elsewhere: see package
// keyshape.
//
//go:embed testdata/vendorforms.tsv
var vendorForms string

// leastVendorForms is how many forms of a hundred must be masked.
const leastVendorForms = 90

// At least nine of ten documented forms of secrets are masked. Those that are not are logged:
// most are values that nothing tells from others, as the name of an element of a list.
func TestVendorForms(t *testing.T) {
	unescape := strings.NewReplacer(`\\n`, `\n`, `\n`, "\n", `\r`, "\r")
	all, missed := 0, 0
	for line := range strings.Lines(vendorForms) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.SplitN(line, "\t", 3)
		if len(parts) != 3 {
			t.Fatalf("no form: %q", line)
		}
		text, secrets := spell(unescape.Replace(parts[2]))
		if len(secrets) == 0 {
			t.Errorf("no secret in %q", line)
		}
		all++
		got := redactForm(parts[1], text)
		if slices.ContainsFunc(secrets, func(s string) bool { return isLeft(got, s) }) {
			missed++
			t.Logf("%s: %s: %s", parts[0], parts[1], got)
		}
	}
	t.Logf("%d of %d are masked", all-missed, all)
	if all < 300 || 100*missed > (100-leastVendorForms)*all {
		t.Errorf("%d of %d are masked, want %d %%", all-missed, all, leastVendorForms)
	}
}

// isLeft reports whether half of a secret is in a text.
func isLeft(text, secret string) bool {
	n := max(min(len(secret), 6), len(secret)/2)
	for i := 0; i+n <= len(secret); i++ {
		if strings.Contains(text, secret[i:i+n]) {
			return true
		}
	}
	return false
}
