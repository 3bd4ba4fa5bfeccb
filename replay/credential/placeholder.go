package credential

import "regexp"

// The placeholders in a capture. In a body, a placeholder is truncated or padded with dots to the
// length of the secret, so its tag may be truncated too.
//
// Source: captures/README.md#redaction
var (
	// The placeholders that replace secrets in a capture: [redacted:3f2a9c1b] in headers,
	// redacted-3f2a9c1b in bodies. The hexadecimal digits are the tag, which is the same for equal
	// secrets. In a body, a placeholder is truncated or padded with dots to the length of the secret,
	// so its tag may be truncated too.
	//
	// Source: captures/README.md#redaction
	InHeader = regexp.MustCompile(`\[redacted:([0-9a-f]{8})\]`)
	InBody   = regexp.MustCompile(`\bredacted-([0-9a-f]{3,8})\b\.*`)

	// InBytes matches the beginning of a placeholder anywhere in an encoded message. In protobuf, the
	// length before a placeholder and the tag after it may be bytes that read like letters, so InBody
	// does not find all of them.
	InBytes = regexp.MustCompile(`redacted-[0-9a-f]{3}`)
)

// IsRedacted reports whether a text contains a placeholder for a secret.
func IsRedacted(s string) bool { return InHeader.MatchString(s) || InBody.MatchString(s) }
