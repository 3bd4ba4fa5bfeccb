package syntax

import (
	"bytes"
	"strings"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/names"
)

const (
	// maxUser and maxUserinfo limit the user name, and the user name with the password, in a URL.
	maxUser     = 256
	maxUserinfo = 512

	// maxURLPath limits the host and path of a URL that are searched for a secret, in bytes.
	maxURLPath = 2 << 10
)

// urlAt finds the secret in a URL at whose "://" index i is: the password or token before its host, or, if it has
// none, a secret in its path. final is as for Finder.At.
func urlAt(b []byte, i int, final bool) (match.Match, match.State) {
	rest := b[i:]
	if n := min(len(rest), 3); string(rest[:n]) != "://"[:n] {
		return match.Match{}, match.Nothing
	} else if n < 3 {
		return match.Pending(final)
	}
	if m, v := userinfoAt(b, i, final); v != match.Nothing {
		return m, v
	}
	return pathAt(b, i, final)
}

// userinfoAt finds the password in scheme://user:password@host, or the token in scheme://token@host; i is the index of
// "://". final is as for Finder.At.
func userinfoAt(b []byte, i int, final bool) (match.Match, match.State) {
	rest := b[i:]

	// The user, up to a colon, then the password, up to an @.
	n := 3
	for n < len(rest) && n < maxUser && charset.User.Has(rest[n]) {
		n++
	}
	if n == len(rest) && n < maxUser {
		return match.Pending(final)
	}
	isToken := charset.LooksRandom(rest[3:n])
	if n < maxUser && rest[n] == '@' && isToken {
		return match.Match{Start: i + 3, End: i + n, Secret: string(rest[3:n]), Rule: match.URLPassword}, match.Found
	}
	if n == maxUser || rest[n] != ':' {
		return match.Match{}, match.Nothing
	}
	return passwordAt(b, i, n+1, isToken, final)
}

// passwordAt finds the password at index from after the "://" at index i. isToken means that the user name before it is a
// secret, too. final is as for Finder.At.
func passwordAt(b []byte, i, from int, isToken, final bool) (match.Match, match.State) {
	rest := b[i:]
	n := from
	for n < len(rest) && n < maxUserinfo && (charset.User.Has(rest[n]) || rest[n] == ':') {
		n++
	}
	if n == len(rest) && n < maxUserinfo {
		return match.Pending(final)
	}
	if n == maxUserinfo || rest[n] != '@' || n == from {
		return match.Match{}, match.Nothing
	}
	if isToken {
		from = len("://")
	}
	return match.Match{Start: i + from, End: i + n, Secret: string(rest[from:n]), Rule: match.URLPassword}, match.Found
}

// secretHosts are the beginnings of hosts and paths after which the rest of the path is a secret: whoever knows the URL
// may use it. They come from the documentation of the services.
var secretHosts = [][]byte{
	[]byte("hooks."), []byte("hook."), []byte("hc-ping.com/"), []byte("fcm.googleapis.com/fcm/send/"),
	[]byte("updates.push.services.mozilla.com/wpush/"), []byte("web.push.apple.com/"), []byte("files.slack.com/upload/"),
}

// keyedHosts are parts of hosts whose services expect an API key in the path.
var keyedHosts = [][]byte{[]byte("infura.io"), []byte("alchemy.com"), []byte("quiknode.pro"), []byte("datadoghq.com"), []byte("loggly.com")}

// secretSegments are words in a segment of a path after which a random segment is a secret.
var secretSegments = names.SetOf("hooks hook webhook webhooks webhookb2 key apikey magic magic-link reset reset-password " +
	"password-reset confirm confirmation verify verification activate invite invitation invitations " +
	"unsubscribe inputs receiver secret autologin otp unlock passwordreset")

// linkWords are words in such a segment that consists of several words: accept-invite, verify-email.
var linkWords = names.SetOf("invite invitation verify verification reset magic unsubscribe confirm confirmation activate unlock autologin otp")

// hasLinkWord reports whether a segment of a path has one of linkWords between hyphens.
func hasLinkWord(segment []byte) bool {
	for rest, found := segment, true; found && bytes.IndexByte(segment, '-') > 0; {
		var word []byte
		if word, rest, found = bytes.Cut(rest, []byte("-")); linkWords[string(word)] {
			return true
		}
	}
	return false
}

// nextSegments are segments of a path directly after which a segment that looks like a key is a secret. Elsewhere they name
// resources, whose identifiers stay.
var nextSegments = names.SetOf("api rest auth login token trigger push ping deploy feed feeds share s callback")

// isSecretSegment reports whether a segment of a path announces a secret, as a whole or by the word "hook" in it.
func isSecretSegment(segment []byte) bool {
	return len(segment) <= maxWord && (secretSegments[string(segment)] || hasLinkWord(segment) || bytes.Contains(segment, []byte("hook")) || bytes.Contains(segment, []byte("Hook")))
}

// isKeySegment reports whether a segment of a path is a secret by the one before it, or by its own length: identifiers are
// shorter.
func isKeySegment(before, segment []byte) bool {
	if len(segment) < charset.LeastShortKey {
		return false
	}
	if before == nil && charset.LooksMixedKey(segment) {
		return true // the first one of the path
	}
	if len(before) <= maxWord && nextSegments[strings.ToLower(string(before))] && (charset.LooksKey(segment) || string(before) != "api" && charset.LooksShortKey(segment)) {
		return true
	}
	return len(segment) >= leastLongKey && charset.LooksKey(segment) && !charset.IsHex(string(segment))
}

// leastLongKey is the smallest length of a segment of a path that is a secret whatever precedes it, in bytes.
const leastLongKey = 60

// maxSegments is the greatest number of segments of a path that are searched.
const maxSegments = 32

// maxWord is the greatest length of a segment of a path that is searched for a word, in bytes.
const maxWord = 24

// pathAt finds a secret in the path of the URL at whose "://" index i is: of a webhook, of a link that signs in, or an
// API key. final is as for Finder.At.
func pathAt(b []byte, i int, final bool) (match.Match, match.State) {
	start := i + 3
	end := start
	for end < len(b) && end-start < maxURLPath && isURLPath(b[end]) {
		end++
	}
	if end == len(b) && end-start < maxURLPath && !final {
		return match.Match{}, match.Undecided
	}
	from, to := pathSecret(b[start:end])
	if to == 0 {
		return match.Match{}, match.Nothing
	}
	secret := b[start+from : start+to]
	return match.Match{Start: start + from, End: start + to, Secret: string(secret), Learn: charset.LooksRandom(secret), Rule: match.Parameter, Name: "path"}, match.Found
}

// isURLPath reports whether c may occur in the host or path of a URL.
func isURLPath(c byte) bool {
	return charset.Token.Has(c) || c == '@' || c == ','
}

// pathSecret returns where the secret is in the host and path of a URL; to is 0 if there is none.
func pathSecret(url []byte) (from, to int) {
	slash := bytes.IndexByte(url, '/')
	if slash < 0 {
		return 0, 0
	}
	for _, start := range secretHosts {
		if bytes.HasPrefix(url, start) {
			from, to = max(slash, len(start)-1)+1, len(bytes.TrimRight(url, "/."))
			if to <= from {
				// The URL ends with the host, or with the known beginning of the path.
				return 0, 0
			}
			return from, to
		}
	}
	isKeyed := false
	for _, host := range keyedHosts {
		isKeyed = isKeyed || bytes.HasSuffix(url[:slash], host)
	}
	var after bool
	var before []byte
	for at, n := slash+1, 0; at < len(url) && n < maxSegments; n++ {
		end := len(url)
		if n := bytes.IndexByte(url[at:], '/'); n >= 0 {
			end = at + n
		}
		segment := url[at:end]
		switch {
		case after && (charset.LooksRandom(segment) && !isTitle(segment) || charset.LooksShortKey(segment)):
			return at, len(bytes.TrimRight(url, "/."))
		case isKeyed && charset.LooksRandom(segment), isKeySegment(before, segment):
			return at, end
		case bytes.HasPrefix(segment, []byte("private-")) && charset.LooksRandom(segment):
			return at + len("private-"), end
		}

		// An identifier may stand between the word and the secret.
		after = after || isSecretSegment(segment)
		if !isVersion(segment) {
			before = segment
		}
		at = end + 1
	}
	return 0, 0
}

// isTitle reports whether a segment of a path consists of words in lower case and short numbers, as the title of a page does.
func isTitle(segment []byte) bool {
	for word := range bytes.SplitSeq(segment, []byte("-")) {
		isWord := len(bytes.Trim(word, "abcdefghijklmnopqrstuvwxyz")) == 0
		if !isWord && (len(word) > 4 || len(bytes.Trim(word, "0123456789")) > 0) {
			return false
		}
	}
	return true
}

// isVersion reports whether a segment of a path is the version of an interface, such as v1, or 1.
func isVersion(segment []byte) bool {
	if len(segment) == 1 && segment[0] >= '0' && segment[0] <= '9' {
		return true
	}
	return len(segment) > 1 && len(segment) <= 4 && segment[0] == 'v' && len(bytes.Trim(segment[1:], "0123456789.")) == 0
}
