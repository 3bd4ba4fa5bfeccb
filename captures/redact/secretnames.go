package redact

import "strings"

// nameKind says what a parameter's or a JSON member's name tells.
type nameKind uint8

const (
	otherName     nameKind = iota
	secretName             // its value is a secret
	perhapsName            // it is, if it looks like one
	parameterName          // it is in a URL; elsewhere the name means other things

	// perhapsParameter is one in a URL, if its value looks like a token.
	perhapsParameter
)

// kindOf classifies a name as it is spelt, without allocating: bodies have
// many.
func (r *Redactor) kindOf(name []byte) nameKind {
	var buf [maxName + 1]byte
	return r.normalKind(appendNormal(buf[:0], name))
}

// normalKind classifies a normalised name, or, of names such as user[password] and
// ns:password, what their last part says.
func (r *Redactor) normalKind(name []byte) nameKind {
	kind := r.nameKind(string(name))
	if kind != otherName || len(name) < 4 {
		return kind
	}
	for i := len(name) - 1; i >= 0; i-- {
		if c := name[i]; c == '[' || c == ':' || c == '$' || c == '/' {
			return r.nameKind(strings.TrimRight(string(name[i+1:]), "]"))
		}
	}
	return otherName
}

// nameKind classifies a normalised name.
func (r *Redactor) nameKind(name string) nameKind {
	if len(r.names) > 0 && r.names[name] {
		return secretName
	}
	if n := len(name); n > 0 && n <= maxName && nameEnds[name[n-1]]&(1<<(n&63)) != 0 {
		if kind, ok := secretNames[name]; ok {
			return kind
		}
	}
	if len(name) < 6 {
		return otherName
	}
	// The last letters decide, and most names have others.
	switch name[len(name)-1] {
	case 'n', 'y', 't', 'd', 'e', 'h', 's':
	default:
		return otherName
	}
	if inSecretFamily(name) || name[len(name)-1] == 's' && inSecretFamily(name[:len(name)-1]) {
		return secretName
	}
	return otherName
}

// inSecretFamily reports whether a normalised name ends as those of secrets do.
func inSecretFamily(name string) bool {
	for i := range secretFamilies {
		family := &secretFamilies[i]
		start, ok := strings.CutSuffix(name, family.end)
		for i := 0; ok && i < len(family.names); i++ {
			if strings.HasSuffix(start, family.names[i]) {
				return true
			}
		}
	}
	return false
}

// secretNames are names that say it as a whole, normalised.
var secretNames = kindsOfNames(map[nameKind]string{
	secretName: "cookie setcookie credentials xamzsignature xamzsecuritytoken xgoogsignature pwd pass passcode otp totp otpcode totpcode " +
		"mfacode mfatoken twofactorcode 2facode verificationcode onetimecode onetimepassword recoverycode recoverycodes backupcode backupcodes " +
		"mnemonic seedphrase recoveryphrase dbpass userpass smtppass mysqlpwd pgpass dbpwd userpwd sessionid sessionkey jsessionid phpsessid " +
		"samlresponse samlrequest samlassertion clientassertion codeverifier devicecode authcode authorizationcode secretstring " +
		"secretbinary secretvalue dpop accesskeyid appkey usersession passworddigest smscode pincode logincode",
	perhapsName: "token tokens jwt auth bearer csrf xsrf session sid ticket assertion accesstokens magiclink hmac",
	parameterName: "key code sig signature pwd pass xamzcredential xgoogcredential sas oauthsignature oauthverifier " +
		"accesskey samlart",
	perhapsParameter: "refresh login magic refreshkey invite verify nonce tok sess otk",
})

// nameEnds has the lengths of those names by their last letter, one bit for each: most
// names of members need no look at the table then.
var nameEnds = func() (ends [256]uint64) {
	for name := range secretNames {
		ends[name[len(name)-1]] |= 1 << (len(name) & 63)
	}
	return ends
}()

func kindsOfNames(lists map[nameKind]string) map[string]nameKind {
	all := make(map[string]nameKind)
	for kind, list := range lists {
		for name := range strings.FieldsSeq(list) {
			if all[name] == otherName || kind == secretName {
				all[name] = kind
			}
		}
	}
	return all
}

// secretFamilies are the names of secrets that end alike, after one of several words.
var secretFamilies = [...]struct {
	end   string
	names []string
}{
	{"token", []string{
		"access", "refresh", "id", "session", "auth", "api", "bearer", "security", "csrf", "xsrf", "user", "device", "oauth", "jwt", "login",
		"reset", "invite", "verification", "verify", "bot", "deploy", "service", "webhook", "admin", "bootstrap", "vault", "sas", "remember", "secret",
		"authenticity", "github", "gitlab", "slack", "npm", "discord", "telegram", "registry", "identity", "personal", "app", "private", "gh",
	}},
	{"key", []string{
		"api", "secret", "access", "private", "encryption", "auth", "signing", "subscription", "functions", "master", "account", "shared",
		"hmac", "consumer", "admin", "function", "sas", "application",
	}},
	{"secret", []string{""}},
	{"password", []string{""}},
	{"passwd", []string{""}},
	{"passphrase", []string{""}},
	{"authorization", []string{""}},
}

// looksRandom reports whether a value of a name that often means other things
// is a token after all: long, one word, with a digit.
func looksRandom(v []byte) bool {
	digit := false
	for _, c := range v {
		if !tokenChars.has(c) {
			return false
		}
		digit = digit || c >= '0' && c <= '9'
	}
	return digit && len(v) >= 16
}
