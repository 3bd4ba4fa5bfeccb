package syntax

import (
	"bytes"
	"maps"
	"slices"

	"unwire/captures/redact/internal/match"
)

// passwordFlags maps the beginnings or ends of names of commands to the flag after which they take a password.
var passwordFlags = map[string]string{
	"mysql": " -p", "mariadb": " -p", "hpass ": " -p", "hdbsql ": " -p", "ker login ": " -p", "man login ": " -p",
	"ipmitool ": " -P", "sqlcmd ": " -P", "tto_": " -P", "s-cli ": " -a", "ldap": " -w", "vsql ": " -w", "snmp": " -c",
}

// commands are the keys of passwordFlags.
var commands = textsOf(slices.Sorted(maps.Keys(passwordFlags))...)

// flagAt finds the password after a flag of the command whose name begins at index i: mysql -u root -pVALUE, redis-cli -a VALUE.
// final and flush are as for Finder.At.
func flagAt(b []byte, i int, final, flush bool) (match.Match, match.State) {
	command, v := commands.firstOf(b[i:])
	if v != match.Found {
		return orNothing(v, final)
	}
	flag := passwordFlags[command]
	rest := b[:min(len(b), i+maxSpaced)]
	isEnd := final || flush || len(rest) == i+maxSpaced
	line := rest[i:]
	if n := bytes.IndexByte(line, '\n'); n >= 0 {
		line, isEnd = line[:n], true
	}
	n := bytes.Index(line, []byte(flag))
	if n < 0 {
		return match.Pending(isEnd)
	}
	from, end := nextWord(line, n+len(flag))
	if end == len(line) && !isEnd {
		return match.Match{}, match.Undecided
	}
	from, end = unquoted(line, from, end)
	value := line[from:end]
	if len(value) < leastMarked || value[0] == '-' || value[0] == '$' || value[0] == '<' {
		return match.Match{}, match.Nothing
	}
	return match.Match{Start: i + from, End: i + end, Secret: string(value), Learn: len(value) >= match.ShortSecret, Rule: match.Parameter, Name: flag[1:]}, match.Found
}

// unquoted returns the part of the word b[from:end] within its quotes, and without the end of the JSON string around it.
func unquoted(b []byte, from, end int) (int, int) {
	if from < end && (b[from] == '"' || b[from] == '\'') {
		from++
	}
	if n := bytes.IndexAny(b[from:end], "\"'\\"); n >= 0 {
		end = from + n
	}
	return from, end
}

// imapLogin is the command of IMAP that signs in.
const imapLogin = "LOGIN "

// loginAt finds the password in the command of IMAP at index i: a1 LOGIN mary "x". final is as for Finder.At.
func loginAt(b []byte, i int, final bool) (match.Match, match.State) {
	rest := b[:min(len(b), i+maxSpaced)]
	if _, v := expect(rest, i, imapLogin); v != match.Found {
		return orNothing(v, final)
	}
	_, user := nextWord(rest, i+len(imapLogin))
	from, end := nextWord(rest, user)
	if end == len(rest) && !final && len(rest) < i+maxSpaced {
		return match.Match{}, match.Undecided
	}
	tag := b[max(0, i-lookBack):i]
	tag, isCommand := bytes.CutSuffix(tag[bytes.LastIndexByte(tag, '\n')+1:], []byte(" "))
	isLine := bytes.IndexByte(rest[i:end], '\n') < 0 && endsLine(rest[end:])
	from, end = unquoted(rest, from, end)
	if !isCommand || !isLine || end-from < leastMarked || len(tag) == 0 || len(tag) > 12 || bytes.IndexByte(tag, ' ') >= 0 {
		return match.Match{}, match.Nothing
	}
	return match.Match{Start: from, End: end, Secret: string(rest[from:end]), Rule: match.Parameter, Name: "LOGIN"}, match.Found
}
