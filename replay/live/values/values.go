// Package values splits messages into the values in them, in the same way for all codecs, and
// replaces values.
//
//	d := values.Open(data, isProto)
//	if at := d.At("call.id"); at != nil {
//		data, err = d.SetText(at, fresh)
//	}
//
// A Leaf is a value at a path of a message. Protobuf and JSON have the same leaves, so comparisons
// do not depend on the codec: a JSON map has entries with a key and a value, digits in a string may
// be a number, and white space is ignored. If bytes have two interpretations, both are kept: random
// bytes that parse as a message are a value, and have leaves inside.
//
// A Part is a value inside a leaf: a string or number of the JSON in it, a field of the message in
// its base64, the content of compressed data (gzip, zstd, br), or a word of a text. Its place is a
// text such as "gzip json id". Parts can contain further parts, up to a depth.
//
// A Spelling is another form of the same value: hexadecimal, base64, the bytes of a UUID, a digest.
// A Shape distinguishes kinds of messages. Replacements replace values wherever they occur, in
// leaves and in their parts, and encode the surrounding layers again.
//
// Package live uses it to follow identifiers. The package does not depend on exchanges.
//
// Limits: 20,000 leaves in a message, none below a JSON object or array whose path is longer than 1,024 bytes; parts in values of up to 1 MiB; a Budget for decompression.
package values
