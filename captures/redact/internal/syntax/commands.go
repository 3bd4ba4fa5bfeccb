package syntax

import (
	"bytes"

	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/names"
)

// commandFlags maps flags to the commands of a shell that take a password after them.
var commandFlags = map[string]map[string]bool{
	" -p": names.SetOf("mysql mysqldump mysqladmin mysqlimport mysqlshow mariadb mariadb-dump sshpass hdbsql login"),
	" -P": names.SetOf("ipmitool sqlcmd bcp tsql mosquitto_pub mosquitto_sub zip unzip"),
	" -a": names.SetOf("redis-cli valkey-cli"),
	" -w": names.SetOf("ldapsearch ldapmodify ldapadd ldapdelete ldappasswd ldapwhoami vsql"),
	" -A": names.SetOf("snmpget snmpwalk snmpset snmpbulkwalk snmptrap"),
	" -X": names.SetOf("snmpget snmpwalk snmpset snmpbulkwalk snmptrap"),
	" -c": names.SetOf("snmpget snmpwalk snmpset snmpbulkwalk snmptrap"),
	" -k": names.SetOf("choco nuget"),
}

// flagStarts returns the flags of commandFlags.
func flagStarts() []string {
	var starts []string
	for flag := range commandFlags {
		starts = append(starts, flag)
	}
	return starts
}

// flagAt finds the value of the flag at index i if it takes a password: mysql -u root -pVALUE, redis-cli -a VALUE. final and
// flush are as for Finder.At.
func flagAt(b []byte, i int, final, flush bool) (match.Match, match.State) {
	const length = len(" -p")
	if i+length > len(b) {
		return match.Pending(final)
	}
	commands := commandFlags[string(b[i:i+length])]
	if commands == nil || !hasCommand(b[max(0, i-lookBack):i], commands) {
		return match.Match{}, match.Nothing
	}
	rest := b[:min(len(b), i+maxSpaced)]
	from, end := nextWord(rest, i+length)
	if end == len(rest) && !final && !flush && len(rest) < i+maxSpaced {
		return match.Match{}, match.Undecided
	}
	from, end = unquoted(rest, from, end)
	value := rest[from:end]
	if len(value) < leastMarked || value[0] == '-' || value[0] == '$' || value[0] == '<' || bytes.IndexByte(rest[i+length:from], '\n') >= 0 {
		return match.Match{}, match.Nothing
	}
	return match.Match{Start: from, End: end, Secret: string(value), Learn: len(value) >= match.ShortSecret, Rule: match.Parameter, Name: string(b[i+1 : i+length])}, match.Found
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

// hasCommand reports whether one of some commands is a word of the line that b ends in.
func hasCommand(b []byte, commands map[string]bool) bool {
	b = b[bytes.LastIndexByte(b, '\n')+1:]
	for word := range bytes.FieldsFuncSeq(b, func(r rune) bool { return r == ' ' || r == '\t' || r == '/' || r == '"' || r == '|' || r == '\\' }) {
		if commands[string(word)] {
			return true
		}
	}
	return false
}

// imapLogin is the command of IMAP that signs in.
const imapLogin = " LOGIN "

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
	tag := b[bytes.LastIndexByte(b[max(0, i-lookBack):i], '\n')+1+max(0, i-lookBack) : i]
	isLine := bytes.IndexByte(rest[i:end], '\n') < 0 && endsLine(rest[end:])
	from, end = unquoted(rest, from, end)
	if !isLine || end-from < leastMarked || len(tag) == 0 || len(tag) > 12 || bytes.IndexByte(tag, ' ') >= 0 {
		return match.Match{}, match.Nothing
	}
	return match.Match{Start: from, End: end, Secret: string(rest[from:end]), Rule: match.Parameter, Name: "LOGIN"}, match.Found
}
