package syntax

import (
	"bytes"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/names"
)

// spacedWords are last words of names that a space may separate from their values, with the space: password "x",
// storePassword 'x', PSK "x".
var spacedWords = textsOf("password ", "Password ", "PASSWORD ", "passwd ", "Passwd ", "passphrase ", "Passphrase ", "pass ", "Pass ", "PASS ", "pwd ", "Pwd ", "passin ",
	"secret ", "SECRET ", "token ", "Token ", "TOKEN ", "psk ", "PSK ", "auth ", "authtok ", "masterauth ", "mmunity ", "EAP ", "XAUTH ", "_KEY ", "_key ", "-key ", "Key ")

// headerCommands are ends of commands of configuration files that set a header field: proxy_set_header X-Api-Key x.
var headerCommands = textsOf("t_header ", "d_header ", "t-header ")

// maxSpaced limits what may be between a name and the end of its value, in bytes.
const maxSpaced = 512

// spacedAt finds the value after a name and a space: in quotes, as the rest of a line that begins with the name, after the
// name of a flag, or, in a sentence, if it looks like a password. One of spacedWords begins at index i. final and flush are as
// for Finder.At.
func spacedAt(n *names.Names, b []byte, i int, final, flush bool) (match.Match, match.State) {
	word, v := spacedWords.firstOf(b[i:])
	if v != match.Found {
		return orNothing(v, final)
	}
	at, end := i, i+len(word)-1
	for at > 0 && end-at < names.MaxLen && charset.Name.Has(b[at-1]) {
		at--
	}
	name := b[at:end]
	kind := n.Kind(bytes.TrimLeft(name, "-"))
	if hasSuffixOf(b[:end], secretPhrases) {
		kind = names.Secret
	}
	if kind != names.Secret && kind != names.Perhaps {
		return match.Match{}, match.Nothing
	}
	m, v := spacedValue(b, at, end, kind, final, flush)
	if v == match.Found {
		m.Rule, m.Name = match.Parameter, string(name)
	}
	return m, v
}

// secretPhrases are commands of configuration files that set a secret: the community of SNMP, the secrets of IPsec, the user
// and password of HAProxy.
var secretPhrases = []string{"snmp-server community", ": EAP", ": XAUTH", "stats auth"}

// isCommunity reports whether b begins with the name of a community of SNMP, after which a line has other words.
func isCommunity(b []byte) bool {
	name, _, _ := bytes.Cut(b, []byte(" "))
	return bytes.HasSuffix(name, []byte("community"))
}

// spacedValue finds the value of the name b[at:end] after the space at index end.
func spacedValue(b []byte, at, end int, kind names.Kind, final, flush bool) (match.Match, match.State) {
	line := b[:min(len(b), end+maxSpaced)]
	isEnd := final || flush || len(line) == end+maxSpaced
	p, quote := afterQuote(line, afterQualifiers(line, end))
	stop := p
	for stop < len(line) && inSpaced(line, stop, quote) {
		stop++
	}
	if stop == len(line) {
		if !isEnd {
			return match.Match{}, match.Undecided
		}
		if quote != "" {
			return match.Match{}, match.Nothing
		}
	}
	value := bytes.TrimRight(line[p:stop], "\\")
	if quote == "" {
		if !isEnd && stop+len(lineBreak) >= len(line) {
			return match.Match{}, match.Undecided
		}
		value = bareSpaced(line, at, p, stop)
	} else if bytes.IndexByte(value, ' ') >= 0 {
		value = nil
	}
	if len(value) < leastMarked || !kind.Fits(value) {
		return match.Match{}, match.Nothing
	}
	return match.Match{Start: p, End: p + len(value), Secret: string(value), Learn: kind == names.Secret && len(value) >= match.ShortSecret}, match.Found
}

// afterQuote returns the index after a quote at index p, with the backslashes before it, and these; p if there is none.
func afterQuote(line []byte, p int) (_ int, quote string) {
	from := p
	for p < len(line) && line[p] == '\\' && p-from < 4 {
		p++
	}
	if p < len(line) && (line[p] == '"' || line[p] == '\'') {
		return p + 1, string(line[from : p+1])
	}
	return from, ""
}

// inSpaced reports whether the byte at index p belongs to a value after a space.
func inSpaced(line []byte, p int, quote string) bool {
	c := line[p]
	switch {
	case quote != "":
		return c != quote[len(quote)-1] && c >= ' '
	case c == '\\':
		return false
	}
	return c > ' ' && c != '"' && c != '\''
}

// qualifiers are words between a name and its value that describe the value.
var qualifiers = names.SetOf("ascii-text encrypted plain-text plaintext cleartext ascii hex --plaintext --iscrypted is")

// afterQualifiers returns the index of the value after spaces and words of qualifiers, and digits that name the form of the
// value, from index p on.
func afterQualifiers(line []byte, p int) int {
	for range 3 {
		for p < len(line) && (line[p] == ' ' || line[p] == '\t') {
			p++
		}
		end := p
		for end < len(line) && line[end] > ' ' {
			end++
		}
		word := line[p:end]
		if end == len(line) || !qualifiers[string(word)] && (len(word) != 1 || word[0] < '0' || word[0] > '9') {
			break
		}
		p = end
	}
	return p
}

// bareSpaced returns the value b[from:stop] without quotes of the name at index at if it is one: the rest of a line that
// begins with the name, the word after a flag, or a word that looks like a password; nil if there is none.
func bareSpaced(line []byte, at, from, stop int) []byte {
	value := line[from:stop]
	isLast := endsLine(line[stop:])
	if isLast && bytes.HasSuffix(value, []byte(";")) {
		value = value[:len(value)-1]
	}
	if len(value) == 0 || notSecrets[string(value)] || bytes.IndexByte([]byte("$%(<[/-=:|*.#@&+"), value[0]) >= 0 {
		return nil
	}
	switch {
	case (isLast || isCommunity(line[at:from])) && beginsLine(line[:at]):
		if mixesSigns(value) && bytes.IndexByte([]byte(".,:;?!)"), value[len(value)-1]) < 0 && !looksPath(value) && bytes.IndexByte(value, '(') < 0 {
			return value
		}
	case line[at] == '-' && at > 0 && isSpace(line[at-1]), isLast && bytes.HasSuffix(line[:at], []byte(" set ")):
		if mixesSigns(value) {
			return bytes.TrimPrefix(value, []byte("pass:"))
		}
	}
	value = bytes.TrimRight(value, ".,:;?!)")
	if looksPassword(value) {
		return value
	}
	return nil
}

// leastPassword is the smallest length of a word of a sentence that looks like a password, in bytes.
const leastPassword = 8

// looksPassword reports whether a word mixes letters of both cases and digits. A path does not look like a password.
func looksPassword(value []byte) bool {
	var upper, lower, digit bool
	for _, c := range value {
		switch {
		case c >= 'A' && c <= 'Z':
			upper = true
		case c >= 'a' && c <= 'z':
			lower = true
		case c >= '0' && c <= '9':
			digit = true
		case c == '/', c == '(', c == '=', c == '<', c >= 0x80:
			return false
		}
	}
	return upper && lower && digit && len(value) >= leastPassword
}

// headerCommandAt finds the value of a header field that a configuration file sets with one of headerCommands, which begins
// at index i. final and flush are as for Finder.At.
func headerCommandAt(n *names.Names, b []byte, i int, final, flush bool) (match.Match, match.State) {
	command, v := headerCommands.firstOf(b[i:])
	if v != match.Found {
		return orNothing(v, final)
	}
	rest := b[:min(len(b), i+maxSpaced)]
	isEnd := final || flush || len(rest) == i+maxSpaced
	from, end := nextWord(rest, i+len(command))
	p, stop := nextWord(rest, end)
	if end-from > names.MaxLen {
		return match.Match{}, match.Nothing
	}
	if stop == len(rest) && !isEnd {
		return match.Match{}, match.Undecided
	}
	name := bytes.Trim(rest[from:end], `+"'`)
	if p == stop || n.Kind(name) != names.Secret && !n.CarriesSecret(string(bytes.ToLower(name))) {
		return match.Match{}, match.Nothing
	}
	if quote := rest[p]; quote == '"' || quote == '\'' {
		p++
		length := bytes.IndexByte(rest[p:], quote)
		if length < 0 {
			return match.Pending(isEnd)
		}
		p, stop = afterScheme(rest, p, p+length), p+length
	}
	value := bytes.TrimRight(rest[p:stop], ";")
	if len(value) < leastMarked || value[0] == '$' || value[0] == '%' {
		return match.Match{}, match.Nothing
	}
	return match.Match{Start: p, End: p + len(value), Secret: string(value), Learn: len(value) >= match.ShortSecret, Rule: match.Parameter, Name: string(name)}, match.Found
}
