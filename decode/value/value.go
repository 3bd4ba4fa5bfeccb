// Package value detects what a single value looks like: the format of a text (a UUID, a URL, a date), the format
// of a file, a serialization other than protobuf (MessagePack, CBOR, DER), or a number that is a time. A payload
// or a number goes in, and a name with an optional note comes out. Forms counts the formats of many payloads.
//
//	value.FileFormat([]byte("%PDF-1.7 ...")) // "pdf"
//	value.TimeUnit(1700000000000)            // "timestamp-ms"
//
// The package does not estimate probabilities: package kind uses its results as evidence for the type of a
// field.
package value

// isDigit reports whether c is an ASCII digit.
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isAlnum reports whether c is an ASCII letter or digit.
func isAlnum(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
