// Package names knows the names that denote secrets: of parameters, of JSON members, and of header fields. For
// example, Kind("accessToken") is Secret.
//
// A Names has the known names and those added by the user. Package redact uses it for header fields and
// parameters of URLs, package syntax for everything else.
package names

import (
	"bytes"
	"slices"
	"strings"

	"unwire/captures/redact/internal/charset"
)

// MaxLen is the greatest length of a name that is classified, in bytes.
const MaxLen = 64

// A Kind classifies the name of a field or parameter: whether a value with this name is a secret.
type Kind uint8

// Kinds of names.
const (
	Other Kind = iota
	// Secret means that the value is a secret.
	Secret
	// Perhaps means that the value is a secret only if it looks random.
	Perhaps
	// Parameter means that the value is a secret in a URL; elsewhere the name has other meanings.
	Parameter

	// perhapsParameter means that the value is a secret in a URL if it looks random.
	perhapsParameter

	// perhapsKey means that the value is a secret if it looks like a random key.
	perhapsKey

	// code means that the value is a secret if it looks like a code of digits or capital letters.
	code

	// digits means that the value is a secret if it consists of digits, as a PIN does.
	digits

	// randomKey means that the value is a secret if it looks like a random key, in a URL, too.
	randomKey

	// issued means that the value is a secret if it looks like a token or like a code of at least six digits.
	issued

	// keyParameter means that the value is a secret in a URL if it looks like a random key.
	keyParameter

	// parameterOrKey is perhapsParameter in a URL, and perhapsKey elsewhere.
	parameterOrKey

	// card means that the value is a secret if it is the number of a payment card.
	card

	// Stored means that the value is a secret of a store of secrets, whether it looks random or not.
	Stored
)

// Fits reports whether a value in a body is a secret. k is the kind of the value's name.
func (k Kind) Fits(value []byte) bool {
	switch k {
	case Secret:
		return len(value) > 0 && !isStandIn(value)
	case Perhaps:
		return charset.LooksToken(value) && !charset.IsIdentifier(value)
	case code:
		return charset.LooksCode(value)
	case digits:
		return charset.LooksPIN(value) || charset.LooksKey(value)
	case card:
		return charset.LooksCard(value)
	case Stored:
		return len(value) >= leastStored && !isStandIn(value) && !charset.LooksTime(value)
	case issued:
		return len(value) <= maxIssued && (charset.LooksToken(value) || charset.LooksPIN(value) && len(value) >= 6 && len(value) <= 8)
	case perhapsKey, parameterOrKey, randomKey:
		return charset.LooksKey(value)
	}
	return false
}

// leastStored is the smallest length of a secret of a store that is masked, in bytes.
const leastStored = 4

// MayBeNumber reports whether the value of a name of kind k is a secret although it is a number without quotes. Numbers
// with other names that denote secrets are counts and identifiers.
func (k Kind) MayBeNumber(name []byte) bool {
	if k != Secret && k != code && k != digits {
		return false
	}
	var buf [MaxLen + 1]byte
	normal := string(appendNormal(buf[:0], name[:min(len(name), MaxLen)]))
	return hasSuffixOf(normal, numberEndings)
}

// MayTell reports whether a value in a body whose name is of kind k may be a secret, depending on the value.
func (k Kind) MayTell() bool {
	switch k {
	case Secret, Perhaps, perhapsKey, parameterOrKey, randomKey, code, digits, issued, card, Stored:
		return true
	}
	return false
}

// FitsParameter reports whether the value of a URL parameter is a secret. k is the kind of the parameter's
// name.
func (k Kind) FitsParameter(value []byte) bool {
	switch k {
	case Parameter, perhapsParameter, parameterOrKey, perhapsKey:
		return charset.LooksRandom(value)
	case keyParameter:
		return charset.LooksKey(value)
	}
	return k.Fits(value)
}

// FitsQuery reports whether the value of a parameter in a URL's query is a secret. k is the kind of the
// parameter's name. Some names are less ambiguous there than in a form.
func (k Kind) FitsQuery(value string) bool {
	switch k {
	case Other:
		return false
	case Secret, Perhaps, Parameter:
		return true
	case parameterOrKey:
		return !isWord(value)
	}
	return k.FitsParameter([]byte(value))
}

// isWord reports whether a value consists of words in lower case, as a choice in a query does: sort=title.
func isWord(value string) bool {
	return len(value) < 24 && strings.Trim(value, "abcdefghijklmnopqrstuvwxyz_.") == ""
}

// standIns are values of fields that denote secrets, in lower case, that state that there is none, or what to do with
// it. They are not secrets.
var standIns = SetOf("null nil none true false undefined same-origin include omit")

// isStandIn reports whether a value is put in the place of a secret: a word such as "none", a variable, or the label
// of a field in a form.
func isStandIn(value []byte) bool {
	first, last := value[0], value[len(value)-1]
	switch {
	case len(value) < 12 && standIns[strings.ToLower(string(value))]:
		return true
	case string(value) == "Password", string(value) == "Secret", string(value) == "Token", bytes.HasPrefix(bytes.ToLower(value[:min(len(value), 5)]), []byte("your_")):
		return true
	case first == '{' && len(value) > 4 && value[1] == '{' && last == '}', first == '$' && len(value) > 3 && value[1] == '{' && last == '}':
		return true
	case first == '<' && last == '>' || first == '%' && last == '%' && len(value) > 2:
		return strings.Trim(string(value[1:len(value)-1]), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_- ") == ""
	case len(value) >= 4 && strings.Trim(string(value), "*") == "", bytes.HasPrefix(value, []byte("arn:aws")):
		return true
	}
	return bytes.IndexByte(value, ' ') > 0 && len(value) < 120 && isLabel(strings.ToLower(string(value)))
}

// isLabel reports whether a text of several words, in lower case, speaks of a secret, as a label in a form does.
func isLabel(text string) bool {
	for word := range strings.FieldsSeq(text) {
		switch strings.Trim(word, ".,:;?!()'\"") {
		case "password", "passwords", "token", "key", "secret", "code", "passphrase", "credentials", "pin":
			return true
		}
	}
	return false
}

// Names decides which names of header fields, parameters and JSON members denote secrets.
type Names struct {
	// headers are the additional names of header fields that denote secrets, in lower case.
	headers map[string]bool
	// added are the additional names of parameters and JSON members that denote secrets, normalized.
	added map[string]bool
	// issuing means that the names are in the bodies of a call that issues secrets.
	issuing bool
	// storing means that the names are in the bodies of a call to a store of secrets. It implies issuing.
	storing bool

	// ends is a filter that excludes most names: it has a bit for each hash of the end of a name that denotes a
	// secret.
	ends [1 << 9]uint64
}

// New returns the built-in names together with additional ones: headers for header fields, added for
// parameters and JSON members.
func New(headers, added []string) *Names {
	n := &Names{headers: make(map[string]bool), added: make(map[string]bool)}
	for _, h := range headers {
		n.headers[strings.ToLower(h)] = true
	}
	for name := range wholeNames {
		n.addEnd(name)
	}
	for _, f := range families {
		for _, start := range f.names {
			n.addEnd(start + f.end)
			n.addEnd(start + f.end + "s")
		}
	}
	for i := range endings {
		n.addEnd(endings[i].end)
		n.addEnd(endings[i].end + "s")
	}
	for _, word := range afterWords {
		n.addAfter(word)
	}
	for _, word := range hashWords {
		n.addAfter(word)
	}
	for _, word := range valueWords {
		n.addEnd(word)
	}
	for _, start := range codeFamily {
		n.addEnd(start + "code")
	}
	for _, a := range added {
		a = string(appendNormal(nil, a))
		n.added[a] = true
		n.addEnd(a)
	}
	return n
}

// Issuing returns a copy of n for the bodies of a call that issues secrets, in which some general names denote secrets if
// the value looks like one.
func (n *Names) Issuing() *Names {
	c := *n
	c.issuing = true
	for name := range issuedNames {
		c.addEnd(name)
	}
	return &c
}

// Storing returns a copy of n for the bodies of a call to a store of secrets, in which general names denote secrets even if
// the value consists of words.
func (n *Names) Storing() *Names {
	c := n.Issuing()
	c.storing = true
	for name := range storedNames {
		c.addEnd(name)
	}
	return c
}

// AreIssuing reports whether n is the result of Issuing or Storing.
func (n *Names) AreIssuing() bool { return n.issuing }

// AreStoring reports whether n is the result of Storing.
func (n *Names) AreStoring() bool { return n.storing }

// addAfter adds the ends of names that a word of afterWords or hashWords follows to the filter ends.
func (n *Names) addAfter(word string) {
	for i := range families {
		n.addEnd(families[i].end + word)
	}
	for _, short := range endWords {
		n.addEnd(short + word)
	}
	for i := range endings {
		n.addEnd(endings[i].end + word)
	}
}

// addEnd adds the end of a normalized name to the filter ends.
func (n *Names) addEnd(name string) {
	h := hashEnd([]byte(name))
	n.ends[h>>6] |= 1 << (h & 63)
}

// hashEnd returns a 15-bit hash of the last five letters of a name, whatever its spelling, or of fewer if a
// bracket or colon precedes them.
func hashEnd(name []byte) uint32 {
	h, found := uint32(0), 0
	for i := len(name) - 1; i >= 0 && found < 5; i-- {
		c := name[i]
		switch c {
		case '_', '-', '.', ' ', ']':
			continue
		case '[', ':', '$', '/':
			found = 5
			continue
		}
		h = h<<5 | uint32(c&31)
		found++
	}
	return h * 0x9e3779b1 >> 17
}

// mayEnd reports whether the filter ends permits that name denotes a secret.
func (n *Names) mayEnd(name []byte) bool {
	h := hashEnd(name)
	return n.ends[h>>6]&(1<<(h&63)) != 0 || endsInKey(name) || endsShort(name) || endWord(name) != ""
}

// endWord returns the word of endWords with which a name ends, as a word of its own; "" if there is none.
func endWord(name []byte) string {
	n := len(name)
	if n < 5 {
		return ""
	}
	switch name[n-1] | 0x20 {
	case 's', 'd', 'p', 'k', 'c', 'v', 'w', 'n':
	default:
		return ""
	}
	for _, word := range endWords {
		at := n - len(word)
		if at < 1 || !bytes.EqualFold(name[at:], []byte(word)) {
			continue
		}
		before, first := name[at-1], name[at]
		isUpper := first >= 'A' && first <= 'Z'
		if before == '_' || before == '-' || before == '.' || before == ' ' || isUpper && before >= 'a' && before <= 'z' {
			if word == "pass" && isOtherPass(name[:at]) {
				return ""
			}
			return word
		}
	}
	return ""
}

// isOtherPass reports whether the pass whose name begins with start is none that a user types: a step, a filter or a ticket.
func isOtherPass(start []byte) bool {
	start = bytes.ToLower(bytes.TrimRight(start, "_-. "))
	return slices.ContainsFunc(otherPasses, func(w string) bool { return bytes.HasSuffix(start, []byte(w)) })
}

// endsShort reports whether a name ends in one of shortEndings, or its plural, in any case.
func endsShort(name []byte) bool {
	n := len(name)
	if n > 0 && name[n-1]|0x20 == 's' {
		n--
	}
	if n < 4 {
		return false
	}
	switch name[n-1] | 0x20 {
	case 't', 'd':
		return slices.ContainsFunc(shortEndings, func(end string) bool { return n > len(end) && bytes.EqualFold(name[n-len(end):n], []byte(end)) })
	}
	return false
}

// endsInKey reports whether a name ends in "key" or "keys", in any case.
func endsInKey(name []byte) bool {
	n := len(name)
	if n > 0 && name[n-1]|0x20 == 's' {
		n--
	}
	return n >= 3 && name[n-1]|0x20 == 'y' && name[n-2]|0x20 == 'e' && name[n-3]|0x20 == 'k'
}

// Kind classifies a name in its original spelling. For names such as user[password] and ns:password, the last
// part counts too. It does not allocate memory, because bodies contain many names.
func (n *Names) Kind(name []byte) Kind {
	name = bytes.TrimSuffix(name, []byte("[]"))
	if !n.mayEnd(name) {
		return Other
	}
	var buf [MaxLen + 1]byte
	normal := appendNormal(buf[:0], name)
	kind := n.whole(string(normal))
	if n.storing && kind != Secret && storedNames[string(normal)] {
		return Stored
	}
	if n.issuing && kind != Secret && isIssued(string(normal)) {
		return issued
	}
	if kind != Other || len(normal) < 4 {
		return kind
	}
	switch endWord(name) {
	case "":
	case pinWord:
		return digits
	default:
		return Secret
	}
	for i := len(normal) - 1; i >= 0; i-- {
		if c := normal[i]; c == '[' || c == ':' || c == '$' || c == '/' {
			return n.whole(strings.TrimRight(string(normal[i+1:]), "]"))
		}
	}
	return Other
}

// whole classifies a normalized name, without regard to its parts.
func (n *Names) whole(name string) Kind {
	if len(n.added) > 0 && n.added[name] {
		return Secret
	}
	if kind, ok := wholeNames[name]; ok {
		return kind
	}
	if len(name) >= 6 && (inFamily(name) || name[len(name)-1] == 's' && inFamily(name[:len(name)-1])) {
		return Secret
	}
	if start, ok := strings.CutSuffix(name, "code"); ok && hasSuffixOf(start, codeFamily) {
		return code
	}
	if kind := byAfterWord(name); kind != Other {
		return kind
	}
	for _, word := range valueWords {
		if start, ok := strings.CutSuffix(name, word); ok && len(start) > 2 {
			return n.whole(start)
		}
	}
	if keys, ok := strings.CutSuffix(name, "keys"); ok {
		name = keys + "key"
	}
	return byEnding(name)
}

// byAfterWord classifies a normalized name that one of afterWords or hashWords ends by what precedes that word.
func byAfterWord(name string) Kind {
	for _, word := range afterWords {
		if start, ok := strings.CutSuffix(name, word); ok && isSecretStart(start) {
			return Secret
		}
	}
	for _, word := range hashWords {
		if start, ok := strings.CutSuffix(name, word); ok && (isSecretStart(start) || byEnding(start) == Perhaps) {
			return Perhaps
		}
	}
	return Other
}

// isSecretStart reports whether a normalized name denotes a secret by its family, or is one of endWords.
func isSecretStart(name string) bool {
	return slices.Contains(endWords, name) || len(name) >= 6 && inFamily(name)
}

// inFamily reports whether a normalized name ends with a name from families.
func inFamily(name string) bool {
	for i := range families {
		family := &families[i]
		start, ok := strings.CutSuffix(name, family.end)
		if ok && strings.HasSuffix(start, "existing") {
			return false // the name of a secret
		}
		for i := 0; ok && i < len(family.names); i++ {
			if strings.HasSuffix(start, family.names[i]) {
				return true
			}
		}
	}
	return false
}

// appendNormal appends the normalized form of a name: accessToken, access_token and Access-Token become
// accesstoken.
func appendNormal[T string | []byte](dst []byte, s T) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '_' || c == '-' || c == '.' || c == ' ':
		case c >= 'A' && c <= 'Z':
			dst = append(dst, c+'a'-'A')
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
