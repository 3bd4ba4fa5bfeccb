package syntax

import (
	"bytes"
	"slices"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/names"
	"unwire/captures/redact/internal/textrun"
)

// isOwnedName reports whether a member's name is so generic, such as "value", that another name describes its
// content: that of the enclosing object, or the value of its member "name".
func isOwnedName(name []byte) bool {
	if isValueName(name) {
		return true
	}
	switch string(name) {
	case "current", "previous", "new", "old", "plain", "raw", "params", "args", "resume", "sig", "digest", "code", "signature", "sign", "hash", "inline_string", "cipher", "mac",
		"_content", "#text", "_text", "_value", "val", "clearText":
		return true
	}
	return false
}

// authVerbs are what a message says that authenticates a connection: {"op":"auth","args":["KEY"]}.
var authVerbs = [][]byte{
	[]byte(`:"auth"`), []byte(`:"login"`), []byte(`:"authenticate"`), []byte(`:"authorize"`), []byte(`:"signin"`), []byte(`:"identify"`),
	[]byte(`: "auth"`), []byte(`: "login"`), []byte(`: "authenticate"`), []byte(`:"auth.`), []byte(`:\"login\"`), []byte(`:\"auth\"`),
}

// inAuthMessage reports whether a member named by one of authVerbs precedes index i in a JSON message.
func inAuthMessage(b []byte, i int) bool {
	window := b[max(0, i-lookBack):i]
	for _, verb := range authVerbs {
		if bytes.Contains(window, verb) {
			return true
		}
	}
	return false
}

// ownerKind classifies the value of a JSON member with a generic name at index i by the name of the enclosing
// object or pair.
func (f *Finder) ownerKind(b []byte, i int, name []byte) names.Kind {
	if isValueName(name) {
		if kind, _ := f.siblingKind(b, i); kind != names.Other {
			return kind
		}
	}
	if f.IsIssuing() && isVariable(name) {
		if f.names.AreStoring() {
			return names.Stored
		}
		return names.Perhaps
	}
	if f.names.AreStoring() && isStoredEntry(b, i, name) {
		return names.Stored
	}
	window := b[max(0, i-lookBack):i]
	open := bytes.LastIndexAny(window, "{}")
	if !isOwnedName(name) {
		return names.Other
	}
	if open >= 0 && window[open] != '}' {
		// The object may be the first of a list.
		if kind := f.names.Kind(nameOf(bytes.TrimRight(window[:open], " \t\r\n["))); kind != names.Other {
			return kind
		}
	}
	if inAuthMessage(b, i) {
		return names.Perhaps
	}
	return names.Other
}

// isStoredEntry reports whether the member at index i of a body of a store of secrets is a secret by the name of the
// enclosing object, as the entries of "data" are in a Secret of Kubernetes.
func isStoredEntry(b []byte, i int, name []byte) bool {
	if names.IsProperty(string(name)) {
		return false
	}
	window := b[max(0, i-farBack):i]
	open := bytes.LastIndexAny(window, "{}")
	if open < 0 || window[open] != '{' {
		return false
	}
	switch string(nameOf(window[:open])) {
	case "data", "stringData", "secrets", "variables", "values", "entries", "env", "envs":
		return true
	}
	return false
}

// isVariable reports whether a name is written as that of an environment variable: API_TOKEN.
func isVariable(name []byte) bool {
	letters := 0
	for _, c := range name {
		switch {
		case c >= 'A' && c <= 'Z':
			letters++
		case c != '_' && (c < '0' || c > '9'):
			return false
		}
	}
	return letters >= 3 && !names.IsProperty(string(name))
}

// headerKind classifies the name of a header field or of a JSON member.
func (f *Finder) headerKind(name []byte) names.Kind {
	if len(name) == 0 || len(name) > names.MaxLen {
		return names.Other
	}
	kind := f.names.Kind(name)
	if isSecretType(name) || kind == names.Other && f.names.CarriesSecret(string(bytes.ToLower(name))) {
		return names.Secret
	}
	return kind
}

// isSecretType reports whether a name is the type of a value that must be kept secret.
func isSecretType(name []byte) bool {
	switch string(bytes.ToLower(name)) {
	case "securestring", "secretstring", "sensitive", "encrypted", "concealed", "secret_text", "secrettext":
		return true
	}
	return false
}

// nameOf returns the name of the JSON member whose value begins after b.
func nameOf(b []byte) []byte {
	b = bytes.TrimRight(b, " \t\r\n")
	b, ok := bytes.CutSuffix(b, []byte(":"))
	if !ok {
		return nil
	}
	b = bytes.TrimRight(b, " \t\r\n\"\\")
	at := len(b)
	for at > 0 && len(b)-at < names.MaxLen && charset.Name.Has(b[at-1]) {
		at--
	}
	return b[at:]
}

// listKind classifies the string at index i by the name of the JSON list that contains it or, if it is the
// second of a pair such as ["authorization", "…"], by the first. The same holds for the arguments of a call in source
// code: put("password", "…"), setPassword("…"). It also returns that name.
func (f *Finder) listKind(b []byte, i int) (kind names.Kind, name []byte) {
	window := beforeItem(b[max(0, i-lookBack):i])
	open := bytes.LastIndexAny(window, "[]{}()")
	if open < 0 || window[open] != '[' && window[open] != '(' {
		return names.Other, nil
	}
	if window[open] == '(' {
		switch {
		case open == len(window)-1:
			return f.setterKind(window[:open])
		case takesCredentials(window[:open]) && isOneString(window[open+1:]):
			return names.Secret, []byte("password")
		}
	} else if name = nameOf(window[:open]); len(name) > 0 {
		kind = f.names.Kind(name)
		if kind == names.Other && isOwnedName(name) && (inAuthMessage(b, i) || takesPassword(b[max(0, i-lookBack):i])) {
			kind = names.Perhaps
		}
		if flag := flagBefore(window[open:]); kind == names.Other && flag != nil {
			return f.names.Kind(flag), flag
		}
		return kind, name
	}
	if !isOneString(window[open+1:]) {
		return names.Other, nil
	}
	name = bytes.Trim(window[open+1:], " \t\r\n\\,\"")
	return f.headerKind(name), name
}

// flagBefore returns the name of the flag of a command that is the last string in b, the beginning of a list: ["--token",; nil
// if the string is no flag.
func flagBefore(b []byte) []byte {
	b = bytes.TrimRight(b, " \t\r\n\\,\"")
	flag, ok := bytes.CutPrefix(b[bytes.LastIndexByte(b, '"')+1:], []byte("--"))
	if !ok || len(flag) > names.MaxLen {
		return nil
	}
	return flag
}

// isOneString reports whether b, the beginning of a list, has one string.
func isOneString(b []byte) bool {
	b = bytes.Trim(b, " \t\r\n\\,")
	return len(b) >= 4 && b[0] == '"' && bytes.IndexByte(b[1:], '"') == len(b)-2
}

// takesCredentials reports whether b ends in the name of a function or parameter that takes the name of a user and a password:
// auth=("mary", "x"), SetBasicAuth("mary", "x").
func takesCredentials(b []byte) bool {
	return hasSuffixOf(bytes.ToLower(b[max(0, len(b)-len("authenticate")):]), []string{"auth=", "basicauth", "basic_auth", "login", "signin", "sign_in", "authenticate"})
}

// beforeItem returns what precedes a string without the white space before the string; nil if the string is not an item
// of a list or an argument.
func beforeItem(window []byte) []byte {
	n := len(window)
	for n > 0 && (isSpace(window[n-1]) || window[n-1] == '\\') {
		n--
	}
	if n == 0 || window[n-1] != '[' && window[n-1] != ',' && window[n-1] != '(' || n == len(window) && n > 1 && !textrun.IsText(window[n-2]) {
		return nil
	}
	return window[:n]
}

// setterKind classifies the argument of a call by the name of the function, if that sets a value: setPassword,
// withToken. b ends before the parenthesis.
func (f *Finder) setterKind(b []byte) (names.Kind, []byte) {
	at := len(b)
	for at > 0 && len(b)-at < names.MaxLen && charset.Alnum.Has(b[at-1]) {
		at--
	}
	name := b[at:]
	if len(name) < 6 || string(name[:3]) != "set" && string(name[:3]) != "Set" && string(name[:4]) != "with" && string(name[:4]) != "With" {
		return names.Other, nil
	}
	return f.names.Kind(name), name
}

// inList reports whether the string at index i is an item of a JSON list, or an argument of a call, and may be a secret by
// the name of that.
func (f *Finder) inList(b []byte, i int) bool {
	if i == 0 || b[i-1] == ':' {
		return false
	}
	kind, _ := f.listKind(b, i)
	return kind.MayTell()
}

// passwordMethods are words in the names of methods that take a password as an argument.
var passwordMethods = [][]byte{[]byte("login"), []byte("authenticate"), []byte("unlock"), []byte("passphrase"), []byte("password"), []byte("passwd")}

// takesPassword reports whether b names a method that takes a password as an argument.
func takesPassword(b []byte) bool {
	at := bytes.LastIndex(b, []byte("method"))
	if at < 0 {
		return false
	}
	b = bytes.ToLower(b[at:])
	return slices.ContainsFunc(passwordMethods, func(word []byte) bool { return bytes.Contains(b, word) })
}

// isLastOfLogin reports whether the string from index i to end is the last of the arguments of a call that takes a password, as
// in {"method":"login","params":["mary","…"]}; numbers may follow it.
func isLastOfLogin(b []byte, i, end int) bool {
	before := bytes.TrimRight(b[max(0, i-lookBack):i], " \n\\\t\r")
	after := bytes.TrimLeft(b[min(len(b), end):min(len(b), end+afterLast)], "\"\\ \n\t\r,0123456789")
	if len(before) == 0 || len(after) == 0 || after[0] != ']' {
		return false
	}
	if before[len(before)-1] == ',' && (bytes.Contains(before, []byte("login")) || bytes.Contains(before, []byte("authenticate"))) {
		return true
	}
	return takesPassword(before)
}

// afterLast is how many bytes after an argument are searched for the end of the list.
const afterLast = 16

// listItem finds the string whose opening quote is at index i, as an item of a JSON list. escapes is the number
// of backslashes before the quote. final and flush are as for Finder.At.
func (f *Finder) listItem(b []byte, i, escapes int, final, flush bool) (match.Match, match.State) {
	end := valueEnd(b, i+1, escapes)
	cut := end >= len(b)
	if end+2 >= len(b) && !final && !flush && end-i < match.MaxSecret || cut && !final && end-i < match.MaxSecret {
		return match.Match{}, match.Undecided
	}
	kind, name := f.listKind(b, i)
	if kind == names.Perhaps && isOwnedName(name) {
		if end+afterLast >= len(b) && !final && !flush {
			return match.Match{}, match.Undecided
		}
		if isLastOfLogin(b, i, end) {
			kind = names.Secret
		}
	}
	if !kind.Fits(b[i+1 : end]) {
		return match.Match{}, match.Nothing
	}
	from := afterScheme(b, i+1, end)
	m := match.Match{Start: from, End: end, Secret: string(b[from:end]), Learn: kind == names.Secret && end-from >= match.ShortSecret, Rule: match.Member, Name: string(name)}
	if end-i >= match.MaxSecret || cut && flush {
		m.Mask, m.Learn = &match.Mask{Until: "\""}, false
	}
	return m, match.Found
}
