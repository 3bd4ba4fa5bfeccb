package credential

import "regexp"

// Placeholders as a capture has them. In a body one is cut or padded with dots
// to the length of the secret, so its tag may be cut, too.
//
// Source: captures/README.md#redaction
var (
	InHeader = regexp.MustCompile(`\[redacted:([0-9a-f]{8})\]`)
	InBody   = regexp.MustCompile(`\bredacted-([0-9a-f]{3,8})\b\.*`)
)

// IsRedacted reports whether a text has a placeholder in it.
func IsRedacted(s string) bool { return InHeader.MatchString(s) || InBody.MatchString(s) }
