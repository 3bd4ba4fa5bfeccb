package filter

import (
	"slices"
	"strings"

	"unwire/decode/envelope"
)

// A keyKind says what stands behind a key.
type keyKind uint8

const (
	wordKey keyKind = iota
	plainKey
	sizeKey
	durationKey
	timeKey
	pathKey
	headerKey
)

// A key begins a term.
type key struct {
	name  string
	kind  keyKind
	about string // for completion

	// words are the only ones there are if closed is set, else those that are known.
	words  []string
	closed bool

	// part says that a pattern needs to match a part of a text only, sameCase that upper and
	// lower case differ.
	part, sameCase bool

	facts Facts
}

// isWords are the words of is, with what they depend on.
var isWords = []struct {
	name  string
	facts Facts
}{
	{"edited", Head},
	{"failed", 0},
	{"open", 0},
	{"shortened", 0},
	{"replay", Head},
	{"compressed", Frames},
	{"end", Frames},
	{"malformed", Frames},
}

// keys are all keys, in the order in which they are offered.
var keys = []key{
	{name: "host", about: "host of the URL"},
	{name: "method", about: "remote procedure: Run, Service/Run or package.Service/Run"},
	{name: "code", about: "status of the call", words: envelope.Codes(), closed: true},
	{name: "status", kind: plainKey, about: "HTTP status"},
	{name: "is", about: "failed, open, edited, shortened, replay, compressed, end, malformed", words: isNames(), closed: true},
	{name: "protocol", about: "protocol of the call", words: []string{"connect", "grpc", "grpc-web", "sse", "http", "websocket", "tcp", "tls"}},
	{name: "codec", about: "proto, json, …", words: []string{"proto", "json"}},
	{name: "duration", kind: durationKey, about: "time from the start to the end"},
	{name: "size", kind: sizeKey, about: "body bytes of both directions"},
	{name: "up", kind: sizeKey, about: "body bytes from the client"},
	{name: "down", kind: sizeKey, about: "body bytes from the server"},
	{name: "started", kind: timeKey, about: "when the exchange began"},
	{name: "text", about: "text in a message", part: true, sameCase: true, facts: Frames},
	{name: "path", kind: pathKey, about: "field of a message, and its value", sameCase: true, facts: Frames},
	{name: "type", about: "full name of the message's type", facts: Frames | Types},
	{name: "dir", about: "direction of the frame", words: []string{"up", "down"}, closed: true, facts: Frames},
	{name: "header", kind: headerKey, about: "header or trailer field, and its value", facts: Head},
	{name: "url", about: "whole URL"},
	{name: "verb", about: "HTTP method", words: []string{"GET", "POST", "PUT", "DELETE"}},
	{name: "http", about: "version of HTTP", words: []string{"1.0", "1.1", "2"}},
	{name: "client", about: "client's address, process name or product", facts: Head},
	{name: "source", about: "what recorded the exchange", words: []string{"proxy", "reverse", "passive", "replay"}, facts: Head},
	{name: "outcome", about: "how the exchange ended", words: []string{"complete", "reset", "canceled", "incomplete", "failed"}, closed: true},
	{name: "frames", kind: plainKey, about: "number of frames of both directions"},
	{name: "frame", kind: plainKey, about: "number of the frame in its direction, from 0", facts: Frames},
	{name: "len", kind: sizeKey, about: "length of the message after decompression", facts: Frames},
	{name: "note", about: "text of a note", part: true, facts: Notes},
	{name: "mark", about: "mark on the exchange or anything in it", words: []string{"star"}, facts: Notes},
	{name: "id", kind: plainKey, about: "number of the exchange"},
}

func isNames() (names []string) {
	for _, w := range isWords {
		names = append(names, w.name)
	}
	return names
}

// keyOf returns the key of a name; nil if there is none.
func keyOf(name string) *key {
	i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
	if i < 0 {
		return nil
	}
	return &keys[i]
}

// operators are what may stand behind the key.
func (k *key) operators() []string {
	switch k.kind {
	case wordKey, pathKey, headerKey:
		return []string{":"}
	}
	return []string{":", "<", "<=", ">", ">=", "=", "!="}
}

// similarKey returns the key that a name was probably meant to be; "" if there is none.
func similarKey(name string) string {
	best, least := "", 3
	for i := range keys {
		if d := distance(strings.ToLower(name), keys[i].name); d < least && d < len(name) {
			best, least = keys[i].name, d
		}
	}
	return best
}

// distance is the number of characters to insert, remove or replace to make b of a
// (Levenshtein).
func distance(a, b string) int {
	if len(a) > 2*maxKeyLen {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// maxKeyLen bounds the length of a key's name in bytes.
const maxKeyLen = 8
