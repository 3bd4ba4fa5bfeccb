package redact

import (
	"net/url"
	"strings"

	"unwire/captures/redact/internal/names"
	"unwire/captures/redact/internal/syntax"
)

// issuingWords are words in the path of a URL that say that the call issues secrets or takes them in exchange for others, so
// that a value with a name as general as "key" or "result" in its bodies is a secret if it looks like one.
var issuingWords = names.SetOf("login logon signin signon auth authn authorize authentication authenticate oauth oauth2 token tokens " +
	"secret secrets credential credentials apikey apikeys password passcode otp totp mfa 2fa sso passkey psk")

// lastIssuingWords are those that say so only in the last segment of a path. Before it they name a resource.
var lastIssuingWords = names.SetOf("session sessions ticket")

// keyWords precede "key" or "keys" in the path of a call that issues secrets.
var keyWords = names.SetOf("api access list secret signing shared master hmac account license rotate regenerate derived encryption private")

// countingWords are words with which a path is about the tokens of a language model.
var countingWords = names.SetOf("count counter usage tokenize tokenizer detokenize estimate limits")

// finderFor returns the Finder for the bodies of a call to u, or for the messages of a WebSocket at u.
func (r *Redactor) finderFor(u string) *syntax.Finder {
	if strings.HasPrefix(u, "ws://") || strings.HasPrefix(u, "wss://") {
		return r.messages
	}
	if issuesSecrets(u) {
		return r.issuing
	}
	return r.syntax
}

// issuesSecrets reports whether a call to u issues secrets, by the words in its path.
func issuesSecrets(u string) bool {
	_, rest, found := strings.Cut(u, "://")
	if !found {
		rest = u
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i]
	}
	_, path, _ := strings.Cut(rest, "/")
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	path = strings.Trim(path, "/")
	issues, before := false, ""
	for segment := range strings.SplitSeq(path, "/") {
		isLast := strings.HasSuffix(path, "/"+segment) || segment == path
		for _, word := range pathWords(segment) {
			switch {
			case countingWords[word]:
				return false
			case issuingWords[word], isLast && lastIssuingWords[word]:
				issues = true
			case word == "key" || word == "keys":
				issues = issues || keyWords[before]
			case word == "in" || word == "on":
				issues = issues || before == "sign" || before == "log"
			}
			before = word
		}
	}
	return issues
}

// pathWords returns the words of a segment in lower case: listKeys has the words "list" and "keys".
func pathWords(segment string) []string {
	var words []string
	from := 0
	flush := func(to int) {
		if to > from {
			words = append(words, strings.ToLower(segment[from:to]))
		}
		from = to
	}
	for i := range len(segment) {
		c := segment[i]
		isLetter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		switch {
		case !isLetter:
			flush(i)
			from = i + 1
		case c >= 'A' && c <= 'Z' && i > from && segment[i-1] >= 'a' && segment[i-1] <= 'z':
			flush(i)
		}
	}
	flush(len(segment))
	return words
}
