package redact

import (
	"net/url"
	"slices"
	"strings"

	"unwire/captures/redact/internal/names"
	"unwire/captures/redact/internal/syntax"
)

// issuingWords are words in the path of a URL that say that the call issues secrets or takes them in exchange for others, so
// that a value with a name as general as "key" or "result" in its bodies is a secret if it looks like one.
var issuingWords = names.SetOf("login logon signin signon auth authn authorize authentication authenticate oauth oauth2 token tokens " +
	"credential credentials decrypt unwrap env envs vars envvars apikey apikeys password passcode otp totp mfa 2fa sso passkey psk")

// lastIssuingWords are those that say so only in the last segment of a path. Before it they name a resource.
var lastIssuingWords = names.SetOf("session sessions ticket")

// keyWords precede "key" or "keys" in the path of a call that issues secrets.
var keyWords = names.SetOf("api access list secret signing shared master hmac account license rotate regenerate derived encryption private")

// countingWords are words with which a path is about the tokens of a language model.
var countingWords = names.SetOf("count counter usage tokenize tokenizer detokenize estimate limits")

// storingWords are words in the path of a URL, and storingHosts in its host, that say that the call is to a store of secrets.
var (
	storingWords = names.SetOf("secret secrets secretbundles")
	storingHosts = names.SetOf("vault vaults secretsmanager secretmanager secrets lockbox keyvault csms")
)

// commandNames are names of parameters of a query that say what a call does, as the path does elsewhere.
var commandNames = names.SetOf("cmd command action act method op operation function func svc api do")

// A callKind says how a call treats secrets, by its URL.
type callKind uint8

// Kinds of calls.
const (
	// otherCall is any other call.
	otherCall callKind = iota
	// issuing means that the call issues secrets or takes them in exchange for others.
	issuing
	// storing means that the call reads or writes a store of secrets.
	storing
)

// finderFor returns the Finder for the bodies of a call to u, or for the messages of a WebSocket at u.
func (r *Redactor) finderFor(u string) *syntax.Finder {
	if strings.HasPrefix(u, "ws://") || strings.HasPrefix(u, "wss://") {
		return r.messages
	}
	switch kindOfCall(u) {
	case issuing:
		return r.issuing
	case storing:
		return r.storing
	}
	return r.syntax
}

// kindOfCall returns the kind of a call to u, by the words in its host and path.
func kindOfCall(u string) callKind {
	scheme, rest, found := strings.Cut(u, "://")
	if !found {
		rest = scheme
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, query, _ := strings.Cut(rest, "?")
	host, path, _ := strings.Cut(rest, "/")
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	kind := kindOfPath(strings.Trim(path, "/"))
	if kind == otherCall && runsIssuingCommand(query) {
		kind = issuing
	}
	if found && slices.ContainsFunc(names.Words(host), func(w string) bool { return storingHosts[w] }) {
		kind = storing
	}
	return kind
}

// kindOfPath returns the kind of a call by the words in its path.
func kindOfPath(path string) callKind {
	kind, before := otherCall, ""
	for segment := range strings.SplitSeq(path, "/") {
		isLast := strings.HasSuffix(path, "/"+segment) || segment == path
		for _, word := range names.Words(segment) {
			switch {
			case countingWords[word]:
				return otherCall
			case storingWords[word]:
				kind = storing
			case issuingWords[word], isLast && lastIssuingWords[word],
				(word == "key" || word == "keys") && keyWords[before],
				(word == "in" || word == "on") && (before == "sign" || before == "log"):
				kind = max(kind, issuing)
			}
			before = word
		}
	}
	return kind
}

// runsIssuingCommand reports whether a parameter of a query names a command that issues secrets: cmd=Login.
func runsIssuingCommand(query string) bool {
	for parameter := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(parameter, "=")
		if len(value) > maxCommand || !commandNames[strings.ToLower(name)] {
			continue
		}
		if slices.ContainsFunc(names.Words(value), func(w string) bool { return issuingWords[w] }) {
			return true
		}
	}
	return false
}

// maxCommand is the greatest length of the name of a command, in bytes.
const maxCommand = 64
