package safetext

import "strings"

// ShellFile quotes a file name, address or URL for a POSIX shell, so that it can be copied from the
// terminal. It adds quotes only if they are needed.
//
// Shape: a name that would be an option or, for some tools, a file with arguments (-x, @x) begins with
// ./. Characters that are unsafe on a terminal become *, which the shell expands to the real name.
func ShellFile(name string) string {
	if name == "" {
		return "''"
	}

	// A tool would read a leading - as an option, and a leading @ as the name of a file with
	// arguments.
	if name[0] == '-' || name[0] == '@' {
		name = "./" + name
	}
	if strings.Trim(name, plainInShell) == "" {
		return name
	}

	// Quote only those parts that need it. An asterisk must stay outside of quotes, because the shell
	// has to expand it.
	var b strings.Builder
	quoted := false
	quote := func(on bool) {
		if quoted != on {
			b.WriteByte('\'')
			quoted = on
		}
	}
	for i, r := range name {
		switch {
		case IsUnsafe(r) || r == '\ufffd' && !strings.HasPrefix(name[i:], "\ufffd"):
			quote(false)
			b.WriteByte('*')
		case r == '\'':
			quote(false)
			b.WriteString(`\'`)
		default:
			quote(true)
			b.WriteRune(r)
		}
	}
	quote(false)
	return b.String()
}

// plainInShell are the characters that need no quoting in a shell word.
const plainInShell = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:,@%"
