package syntax

import (
	"bytes"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
)

// maxClause limits what may be between the first word of a clause of SQL and the end of the password in it, in bytes.
const maxClause = 512

// sqlStarts are the beginnings of the words before a password in a statement of SQL, in the usual spellings.
var sqlStarts = []string{"PASSWORD", "Password", "password", "IDENTIFIED", "Identified", "identified"}

// sqlAt finds the password in a statement of SQL, such as CREATE USER u PASSWORD 'x' or ALTER USER u IDENTIFIED BY 'x'. The
// word PASSWORD or IDENTIFIED begins at index i. final and flush are as for Finder.At.
func sqlAt(b []byte, i int, final, flush bool) (match.Match, match.State) {
	rest := b[i:min(len(b), i+maxClause)]
	isPassword := rest[0]|0x20 == 'p'
	word := "identified"
	if isPassword {
		word = "password"
	}
	n := min(len(rest), len(word))
	switch {
	case !bytes.EqualFold(rest[:n], []byte(word[:n])):
		return match.Match{}, match.Nothing
	case len(rest) <= len(word):
		return match.Pending(final)
	case rest[n] == '+' || rest[n] == '%':
		// Percent-encoding becomes a space here, so that this happens only once.
		return findEncoded(b, i, final, flush, func(b []byte, i int, final, flush bool, consider func(match.Match, match.State)) {
			switch {
			case len(b) <= i+len(word):
				consider(match.Pending(final))
			case b[i+len(word)] != '+' && b[i+len(word)] != '%':
				consider(sqlAt(b, i, final, flush))
			}
		})
	case rest[n] != ' ' && rest[n] != '(' && rest[n] != '\n' && rest[n] != '\t' || !isStatement(b[max(0, i-lookBack):i]):
		return match.Match{}, match.Nothing
	}
	isEnd := final || flush || len(rest) == maxClause
	p, ok := clauseValue(rest, n, isPassword)
	if !ok {
		return match.Match{}, match.Nothing
	}
	if p == len(rest) {
		return match.Pending(isEnd)
	}
	m, v := clauseText(rest, p, !isPassword, isEnd, flush && i+len(rest) == len(b))
	m.Start, m.End = m.Start+i, m.End+i
	return m, v
}

// isStatement reports whether a text ends within a statement of SQL that sets a password.
func isStatement(before []byte) bool {
	before = bytes.ToLower(before)
	before = before[bytes.LastIndexByte(before, ';')+1:]
	for _, verb := range [...]string{"create ", "alter ", "grant ", "modify ", "set ", "replace "} {
		at := bytes.LastIndex(before, []byte(verb))
		if at < 0 || at > 0 && charset.Alnum.Has(before[at-1]) {
			continue
		}
		object := before[at+len(verb):]
		for _, word := range [...]string{"user", "role", "login", "account", "credential", "server", "mapping", "link", "password", "connection", "all", "profile"} {
			if bytes.Contains(object, []byte(word)) {
				return true
			}
		}
	}
	return false
}

// clauseValue returns the index of the value in a clause, whose first word ends at index p: after the words WITH plugin, BY
// and AS, an equals sign, and a parenthesis. ok is false if the clause has other words.
func clauseValue(clause []byte, p int, isPassword bool) (_ int, ok bool) {
	hasBy := isPassword
	for {
		p = afterSigns(clause, p)
		end := p
		for end < len(clause) && (charset.Alnum.Has(clause[end]) || clause[end] == '_') {
			end++
		}
		if end == len(clause) {
			if hasBy && !isPassword {
				return p, true
			}
			return end, true
		}
		switch word := string(bytes.ToLower(clause[p:end])); {
		case word == "by", word == "as":
			hasBy = true
		case hasBy && (word == "password" || word == "values" || word == "encrypted"):
		case hasBy:
			return p, true
		case word == "":
			if end = afterQuoted(clause, p); end == p {
				return p, false
			}
		}
		p = end
	}
}

// afterSigns returns the index after white space, parentheses and equals signs at index p.
func afterSigns(clause []byte, p int) int {
	for p < len(clause) && (isSpace(clause[p]) || clause[p] == '(' || clause[p] == '=') {
		p++
	}
	return p
}

// afterQuoted returns the index after the text in quotes at index p, such as the name of a method; p if there is none.
func afterQuoted(clause []byte, p int) int {
	if bytes.IndexByte([]byte("'\"`"), clause[p]) < 0 {
		return p
	}
	n := bytes.IndexByte(clause[p+1:], clause[p])
	if n < 0 {
		return len(clause)
	}
	return p + n + 2
}

// clauseText finds the password at index p of a clause: a text in quotes or, if bare is set, a word. isEnd means that no
// bytes follow the clause, and isCut that they do but cannot be waited for.
func clauseText(clause []byte, p int, bare, isEnd, isCut bool) (match.Match, match.State) {
	from := p
	for from < len(clause) && clause[from] == '\\' && from-p < 8 {
		from++
	}
	if from == len(clause) {
		return match.Pending(isEnd)
	}
	until := ""
	switch quote := clause[from]; {
	case quote == '\'' || quote == '"':
		from++
		until = string(quote)
	case !bare || from > p || !charset.Alnum.Has(quote):
		return match.Match{}, match.Nothing
	}
	end := textEnd(clause, from, until)
	switch {
	case end == len(clause) && !isEnd:
		return match.Match{}, match.Undecided
	case end == len(clause) && until != "" && !isCut:
		return match.Match{}, match.Nothing
	}
	value := bytes.TrimRight(clause[from:end], "\\")
	if len(value) == 0 || bytes.IndexByte([]byte("$%{?"), value[0]) >= 0 {
		return match.Match{}, match.Nothing // the name of a parameter
	}
	m := match.Match{Start: from, End: from + len(value), Secret: string(value), Learn: len(value) >= match.ShortSecret, Rule: match.Parameter, Name: "password"}
	if end == len(clause) && isCut {
		m.End, m.Mask, m.Learn = end, &match.Mask{Until: until + " ;\n"}, false
	}
	return m, match.Found
}

// textEnd returns the index at which the text from index p on ends: at the quote until or the end of the line or, without a
// quote, with the word.
func textEnd(clause []byte, p int, until string) int {
	for p < len(clause) {
		if until == "" && !charset.Bare.Has(clause[p]) || until != "" && (clause[p] == until[0] || clause[p] == '\n') {
			break
		}
		p++
	}
	return p
}
