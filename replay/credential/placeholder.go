package credential

import "regexp"

// The placeholders in a capture. In a body, a placeholder is truncated or padded with dots to the
// length of the secret, so its tag may be truncated too.
//
// Source: captures/README.md#redaction
var (
	InHeader = regexp.MustCompile(`\[redacted:([0-9a-f]{8})\]`)
	InBody   = regexp.MustCompile(`\bredacted-([0-9a-f]{3,8})\b\.*`)
)

// IsRedacted reports whether a text contains a placeholder.
func IsRedacted(s string) bool { return InHeader.MatchString(s) || InBody.MatchString(s) }
