// Package value finds what a value looks like from its bytes alone: the form of a text
// (a UUID, a URL, a date), the format of a file, whether bytes are a whole value in a
// serialization other than protobuf (MessagePack, CBOR, DER), and whether a number is a
// time. A payload or a number goes in, and a name comes out, with a note where something
// is not seen at once. Forms counts the forms of many payloads.
//
// It weighs nothing: how likely a field is text or bytes is what package kind concludes.
package value

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlnum(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
