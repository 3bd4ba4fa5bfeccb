package transcript

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"

	"unwire/decode/transcript/ident"
	"unwire/decode/transcript/language"
)

// A class is the form of a value, such as a UUID or a URL, judged without its surroundings.
type class uint8

const (
	// plain is natural language, or text of no known form.
	plain class = iota
	uuid
	hexID
	randomID
	token
	timestamp
	number
	url
	filePath
	jsonWhole
	jsonPart
	model
	version
	mime

	// setting is a time zone, a locale or a colour.
	setting
	header
	email

	// tag is a text that consists of one tag, such as [DONE] or <end>.
	tag

	// word is an identifier in a program, such as read_file, toolName or success.
	word
)

// A form is a pattern of a class of values.
type form struct {
	// pattern matches the whole value. It is compiled when it is first needed.
	pattern func() *regexp.Regexp

	// max is the maximum size in bytes of a value of this form.
	max int
	class
}

// newForm returns a form.
func newForm(c class, max int, pattern string) form {
	return form{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) }), max, c}
}

// matches reports whether s has the form.
func (f form) matches(s string) bool { return len(s) <= f.max && f.pattern().MatchString(s) }

// forms are the patterns of classes, tried in order on values of one line.
var forms = [...]form{
	newForm(tag, 40, `^(\[[A-Z_ ]+\]|</?[\w-]+ ?/?>)$`),
	newForm(url, 2000, `^[a-z][a-z0-9+.-]{1,20}://\S+$`),
	newForm(mime, 100, `^(application|text|image|audio|video|multipart|font|model)/[\w.+-]+(; ?\w+=\S+)?$`),
	newForm(setting, 60, `^(Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific|Etc)/[A-Za-z_/+-]+[0-9]*$|^[a-z]{2}[-_][A-Z]{2}$|^#[0-9a-fA-F]{6}$`),
	newForm(email, 100, `^[\w.+-]+@[\w-]+(\.[\w-]+)+$`),
	newForm(header, 400, `(?i)^(x-[a-z0-9-]+|content-[a-z]+|authorization|user-agent|traceparent|cookie|accept): ?\S[^\n]*$`),
	newForm(model, 48, `(?i)^(gpt|claude|composer|gemini|llama|mistral|mixtral|sonnet|opus|haiku|grok|deepseek|qwen|kimi|glm|codex|phi|cursor|o[1-9])([-._ ]?[\w.]+){0,6}$`),
	newForm(number, 12, `^\d+\.\d+$`),
	newForm(version, 40, `^([a-z]+[-/])?v?\d+\.\d+(\.\d+)?([-+.][\w.+-]+)?$`),
	newForm(number, 40, `^[-+$€]?\d[\d.,: ]*[%a-zA-Z]{0,2}$`),
	newForm(filePath, 400, `^(~|\.{0,2}|[A-Za-z]:)?[/\\][^\n<>"|?*]{1,400}$|^[\w.@-]+(/[\w.@ -]+)+\.\w{1,8}$|^[\w-]+\.(go|md|txt|js|ts|tsx|py|rs|java|json|ya?ml|toml|html|css|sh|proto|png|jpe?g|svg|lock|mod)$`),
}

// wordForm is the form of identifiers in programs and of other words.
var wordForm = newForm(word, 64, `^[A-Za-z][A-Za-z0-9]*([_.:-]+[A-Za-z0-9]+)*$`)

// classOf returns the class of s, plain if it has no known form.
func classOf(s string) class {
	s = strings.TrimSpace(s)
	if s == "" {
		return plain
	}

	switch ident.Of(s) {
	case ident.UUID:
		return uuid
	case ident.Hex:
		return hexID
	case ident.ID:
		return randomID
	case ident.Token:
		return token
	case ident.Time:
		return timestamp
	}

	// Long texts are not matched against the patterns.
	if looksJSON(s) {
		if class := jsonClass(s); class != plain {
			return class
		}
	}
	if len(s) > 2000 {
		return plain
	}
	for _, f := range forms {
		if f.matches(s) && (f.class != model || isModel(s)) {
			return f.class
		}
	}

	// A lower-case word, or one with connecting characters or capitals inside, is from a
	// program.
	if wordForm.matches(s) && (s[0] >= 'a' && s[0] <= 'z' || strings.ContainsAny(s, "_.:-") || language.HasCamel(s) || strings.ToUpper(s) == s && len(s) > 2) {
		return word
	}
	return plain
}

// isModel reports whether s, which begins like the name of a language model, is such a name and not a sentence.
func isModel(s string) bool {
	return strings.ContainsAny(s, "0123456789") || strings.Contains(s, "-")
}

// jsonClass returns jsonWhole for complete JSON, jsonPart for its beginning or several
// values, and plain for text that only begins like JSON.
func jsonClass(s string) class {
	d := json.NewDecoder(strings.NewReader(s))
	var v json.RawMessage
	if err := d.Decode(&v); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || language.Likeness(s) < 0.5 {
			return jsonPart
		}
		return plain
	}
	switch rest := strings.TrimSpace(s[d.InputOffset():]); {
	case rest == "":
		return jsonWhole
	case rest[0] == '{' || rest[0] == '[':
		// Several values follow each other.
		return jsonPart
	}
	return plain
}

// looksJSON reports whether s begins like a JSON object or a JSON array.
func looksJSON(s string) bool {
	s = strings.TrimLeft(s, " \t\r\n")
	if len(s) < 2 {
		return false
	}
	second := strings.TrimLeft(s[1:], " \t\r\n")
	switch s[0] {
	case '{':
		return second != "" && (second[0] == '"' || second[0] == '}')
	case '[':
		return second != "" && (second[0] == '{' || second[0] == '"' || second[0] == ']')
	}
	return false
}

// maxClassified is the maximum number of pieces of a stream whose class is determined.
const maxClassified = 100

// classify returns the class of the stream's text, or, for separate values, the most
// frequent class of the values.
func (s *stream) classify() class {
	if s.kind != separate {
		return classOf(s.text)
	}
	var counts [word + 1]int
	pieces := s.pieces[:min(len(s.pieces), maxClassified)]
	for _, p := range pieces {
		counts[classOf(p.text)]++
	}
	best := plain
	for c, n := range counts {
		if n > counts[best] {
			best = class(c)
		}
	}
	return best
}
