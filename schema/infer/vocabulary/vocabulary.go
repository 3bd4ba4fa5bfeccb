// Package vocabulary suggests names for fields by what their values are: "url" for URLs, "role" for user and
// assistant. Example values go in, a name or "" comes out.
//
//	vocabulary.Text([]string{"user", "assistant"}) // "role"
//
// A suggestion is no evidence: definitions mark it, and a name from a source replaces it.
package vocabulary

import (
	"regexp"
	"strings"
	"sync"

	"unwire/decode/value"
)

// Text suggests a field name for a string field from examples of its values. All examples must agree; otherwise
// it returns "".
func Text(examples []string) string {
	if len(examples) == 0 {
		return ""
	}
	for _, w := range words() {
		if allOf(examples, func(s string) bool { return w.has[strings.ToLower(s)] }) {
			return w.name
		}
	}
	for _, p := range patterns() {
		if allOf(examples, p.re.MatchString) {
			return p.name
		}
	}
	return formName(examples)
}

// allOf reports whether f returns true for all examples.
func allOf(examples []string, f func(string) bool) bool {
	for _, s := range examples {
		if !f(s) {
			return false
		}
	}
	return true
}

// A wordList is a field name with the texts that suggest it.
type wordList struct {
	// name is the field name.
	name string
	// has are the texts that suggest the name, in lower case.
	has map[string]bool
}

// words are the texts that occur as values of enum-like fields in protocols and programs, the more specific
// ones first.
var words = sync.OnceValue(func() []wordList {
	return []wordList{
		list("role", "user assistant system tool developer human model function"),
		list("finish_reason", "stop length tool_calls tool_use end_turn max_tokens content_filter stop_sequence"),
		list("method", "get post put delete patch head options connect"),
		list("level", "debug info warn warning error fatal trace notice critical"),
		list("status", "active inactive pending running completed complete done failed cancelled canceled success queued in_progress ready draft published archived enabled disabled open closed"),
		list("os", "linux darwin windows macos android ios freebsd win32"),
		list("language", "go python typescript javascript rust java kotlin ruby c++ csharp c# php swift scala bash html css sql typescriptreact javascriptreact"),
		list("currency", "usd eur gbp jpy cny chf aud cad inr krw brl sek nok dkk pln"),
		list("environment", "production staging development test prod dev"),
		list("protocol", "http https tcp udp grpc ws wss"),
	}
})

// list returns a wordList for a field name. all has the texts, separated by spaces.
func list(name, all string) wordList {
	w := wordList{name, map[string]bool{}}
	for s := range strings.FieldsSeq(all) {
		w.has[s] = true
	}
	return w
}

// A pattern is a field name with a regular expression for the texts that suggest it.
type pattern struct {
	// name is the field name.
	name string
	// re matches the texts that suggest the name.
	re *regexp.Regexp
}

// patterns are formats of texts that package value does not recognize, or for which there is a more specific
// name.
var patterns = sync.OnceValue(func() []pattern {
	return []pattern{
		{"locale", regexp.MustCompile(`^[a-z]{2}[-_][A-Z]{2}$`)},
		{"model", regexp.MustCompile(`^(gpt-|claude-|gemini-|o[134](-|$)|llama-?\d|mistral-|deepseek-|grok-|qwen)`)},
		{"mime_type", regexp.MustCompile(`^(text|image|audio|video|application|font|multipart)/[a-z0-9.+-]+(;.*)?$`)},
		{"time_zone", regexp.MustCompile(`^(Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific)/[A-Za-z_/-]+$`)},
		{"color", regexp.MustCompile(`^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})$`)},
		{"user_agent", regexp.MustCompile(`^(Mozilla/5\.0|curl/|okhttp/|Go-http-client/)`)},
		{"ip_address", regexp.MustCompile(`^(\d{1,3}\.){3}\d{1,3}$`)},
		{"phone", regexp.MustCompile(`^\+\d[\d -]{7,}$`)},
		{"id", regexp.MustCompile(`^[a-z]{2,8}_[A-Za-z0-9_-]{10,}$`)},
	}
})

// forms maps the formats of texts that package value recognizes to field names.
var forms = map[string]string{
	"uuid": "id", "url": "url", "email": "email", "path": "path", "semver": "version", "jwt": "token", "data-url": "data_url", "date": "time",
	"json": "json",
}

// formName suggests a field name by the format that all examples have, or "".
func formName(examples []string) string {
	name := ""
	for i, s := range examples {
		form, ok := value.FormOf([]byte(s))
		if !ok || i > 0 && forms[form.Name] != name {
			return ""
		}
		if name = forms[form.Name]; name == "" {
			return ""
		}
	}
	return name
}

// Message suggests names for the fields of a message with a known structure, such as KeyValue, by field number.
// It returns nil for an unknown structure.
func Message(shape string) map[int32]string {
	switch shape {
	case "google.rpc.Status":
		return map[int32]string{1: "code", 2: "message", 3: "details"}
	case "google.protobuf.FieldMask":
		return map[int32]string{1: "paths"}
	case KeyValue:
		return map[int32]string{1: "key", 2: "value"}
	}
	return nil
}

// KeyValue is the name for the structure of messages in a list that could be a map: a key and a value.
const KeyValue = "KeyValue"

// Known suggests a field name for messages of the well-known type called name, or "".
func Known(name string) string {
	switch name {
	case "google.protobuf.Timestamp":
		return "time"
	case "google.protobuf.Duration":
		return "duration"
	case "google.rpc.Status":
		return "status"
	}
	return ""
}
