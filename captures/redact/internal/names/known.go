package names

import "strings"

// wholeNames maps complete normalized names (in lower case, without separators) to their kinds.
var wholeNames = kindsOfNames(map[Kind]string{
	Secret: "cookie setcookie credentials xamzsignature xamzsecuritytoken xgoogsignature pwd pass pw psw pswd passw pword upass mdp passcode otp totp otpcode totpcode " +
		"mfacode mfatoken twofactorcode 2facode verificationcode onetimecode onetimepassword recoverycode recoverycodes backupcode backupcodes " +
		"mnemonic seedphrase recoveryphrase dbpass userpass smtppass mysqlpwd pgpass dbpwd userpwd sessionid sessionkey jsessionid phpsessid " +
		"samlresponse samlrequest samlassertion clientassertion codeverifier devicecode authcode authorizationcode secretstring " +
		"secretbinary secretvalue secretid secrettext secrethash secretdata dpop accesskeyid appkey usersession passworddigest smscode pincode " +
		"logincode appsecretproof clientkeydata privatekeydata psk cvc cvv cvc2 cvv2 cardcode cardnumber ccnumber macaroon nsec authreqid " +
		"dockerconfigjson dockercfg snmpcommunity communitystring secretkeybase sapisid bindcredentials sessioncookie authcookie logincookie sharequestphrase sharesponsephrase requestphrase responsephrase " +
		"rootpw requirepass masterauth authtok ldapdefaultauthtok bindcred bindpw rootpass storepass keypass srcstorepass deststorepass destkeypass srckeypass rocommunity rwcommunity " +
		"keystring securestring presharedsecret",
	Perhaps: "authentication authsig authsignature token tokens jwt auth bearer csrf xsrf session sid assertion credential accesstokens magiclink hmac sign canary apisig tokenauth secrets userhash usersig xsig sec requesttoken publictoken encryptedvalue encryptedpassword securehash hashdigest hashdata signdata signvalue crumb " +
		"pfx p12 pkcs12 pfxdata p12data pkcs12data pfxbase64 p12base64 keystorebase64 keytab verifier",
	perhapsKey:     "key1 key2 keysbase64 seed plaintext userdata customdata",
	randomKey:      "ak sk rt sgn sessionname",
	code:           "pin tan",
	card:           "pan cardno cardnum ccnum ccno creditcardno",
	parameterOrKey: "key accesskey",
	Parameter: "code sig signature pwd pass xamzcredential xgoogcredential sas oauthsignature oauthverifier " +
		"samlart ticket",
	perhapsParameter: "secure refresh login magic refreshkey invite verify nonce tok sess otk hm policy tempurlsig hdnts hdnea",
	keyParameter:     "s t h k sn appid",
})

// kindsOfNames converts lists of names, separated by spaces, to a map from name to kind.
func kindsOfNames(lists map[Kind]string) map[string]Kind {
	all := make(map[string]Kind)
	for kind, list := range lists {
		for name := range strings.FieldsSeq(list) {
			if all[name] == Other || kind == Secret {
				all[name] = kind
			}
		}
	}
	return all
}

// families are names that denote secrets, grouped by their ending, such as "token": "accesstoken", "idtoken".
var families = [...]struct {
	end   string
	names []string
}{
	{"token", []string{
		"access", "refresh", "id", "session", "auth", "api", "bearer", "security", "csrf", "xsrf", "user", "device", "oauth", "jwt", "login",
		"reset", "invite", "verification", "verify", "bot", "deploy", "service", "webhook", "admin", "bootstrap", "vault", "sas", "remember", "secret",
		"authenticity", "mfa", "otp", "totp", "twofactor", "2fa", "factor", "github", "gitlab", "slack", "npm", "discord", "telegram", "registry", "identity", "personal", "app", "private", "gh", "websocket", "ws", "authenticator",
	}},
	{"key", []string{
		"api", "secret", "access", "private", "encryption", "auth", "signing", "subscription", "functions", "master", "account", "shared",
		"hmac", "consumer", "admin", "function", "sas", "application", "recovery", "transaction", "license", "session", "mfa", "manualentry", "wpa", "wpa2", "wep", "wifi",
	}},
	{"pass", []string{
		"root", "user", "db", "admin", "smtp", "mail", "ftp", "redis", "mysql", "web", "login", "keystore", "ssh", "sudo", "basicauth",
		"api", "auth", "priv", "privacy", "crypto", "enc", "encryption", "snmp", "mqtt", "wifi", "wpa", "ldap", "bind", "sip", "vpn", "proxy", "imap", "email", "sql", "pg",
		"postgres", "mongo", "rabbitmq", "amqp", "new", "old", "current", "confirm", "client", "account", "service", "device", "system", "guest", "remote", "host", "ipmi",
		"truststore", "cert", "key", "app", "rcon", "server", "join",
	}},
	{"pwd", []string{"root", "user", "db", "admin", "smtp", "mail", "ftp", "redis", "mysql", "web", "login", "auth", "api", "iam", "new", "old", "current", "confirm", "client", "account", "app", "sql", "wifi"}},
	{"cred", []string{"bind", "user", "login", "admin", "db", "auth", "root", "service", "ldap", "app"}},
	{"cardnumber", []string{""}},
	{"ccnumber", []string{""}},
	{"code", []string{"mfa", "otp", "totp", "verification", "sms", "authorization", "recovery", "backup", "security", "twofactor", "login", "reset"}},
	{"secret", []string{""}},
	{"password", []string{""}},
	{"passwd", []string{""}},
	{"passphrase", []string{""}},
	{"passcode", []string{""}},

	// Words for a password in other languages, without accents.
	{"senha", []string{""}},
	{"contrasena", []string{""}},
	{"contrasenia", []string{""}},
	{"contrasenya", []string{""}},
	{"motdepasse", []string{""}},
	{"passwort", []string{""}},
	{"kennwort", []string{""}},
	{"wachtwoord", []string{""}},
	{"losenord", []string{""}},
	{"passord", []string{""}},
	{"adgangskode", []string{""}},
	{"salasana", []string{""}},
	{"heslo", []string{""}},
	{"haslo", []string{""}},
	{"jelszo", []string{""}},
	{"lozinka", []string{""}},
	{"parola", []string{""}},
	{"parol", []string{""}},
	{"sifre", []string{""}},
	{"katasandi", []string{""}},
	{"matkhau", []string{""}},
	{"clavesecreta", []string{""}},

	// The same in their own spelling.
	{"contraseña", []string{""}},
	{"hasło", []string{""}},
	{"lösenord", []string{""}},
	{"şifre", []string{""}},
	{"пароль", []string{""}},
	{"Пароль", []string{""}},
	{"κωδικός", []string{""}},
	{"密码", []string{""}},
	{"密碼", []string{""}},
	{"口令", []string{""}},
	{"令牌", []string{""}},
	{"密钥", []string{""}},
	{"パスワード", []string{""}},
	{"暗証番号", []string{""}},
	{"비밀번호", []string{""}},
	{"암호", []string{""}},
	{"รหัสผ่าน", []string{""}},
	{"סיסמה", []string{""}},
	{"كلمةالمرور", []string{""}},
	{"authorization", []string{""}},
}

// codeFamily are the words before "code" with which a value is a code of digits or capital letters, such as one for a
// login; in other words, such as "country code", it denotes something else.
var codeFamily = strings.Fields("oob activation confirmation confirm pairing user device exchange session invite invitation login access auth " +
	"email phone challenge magic unlock pin factor 2fa scratch emergency link door gate lock alarm entry keypad")

// endWords are last words of names that denote a secret although they are too short to be an ending: DB_PASS, wifiPsk.
var endWords = []string{"pass", "pwd", "pw", "psw", "pswd", "otp", "totp", "psk", "cvc", "cvv", pinWord}

// otherPasses are words before "pass" with which it is no password.
var otherPasses = strings.Fields("render low high band all by boarding first second third last single multi two compute shadow depth lighting post pre " +
	"optimization compiler frame season ski bus rail day travel event fast seasonal over under sur tres number did is test tests")

// pinWord is the word of endWords whose value must consist of digits, because other things have pins, too.
const pinWord = "pin"

// numberEndings are ends of normalized names that denote secrets that may be numbers without quotes.
var numberEndings = strings.Fields("otp pin cvc cvv cvc2 cvv2 code passcode password cardnumber ccnumber")

// afterWords may follow a name that denotes a secret: passwordConfirmation, password2.
var afterWords = []string{"confirmation", "confirm", "again", "repeat", "text", "1", "2", "new", "old", "plain", "clear"}

// hashWords may follow a name that denotes a secret; the value is then derived from it, and a secret if it looks random.
var hashWords = []string{"hash", "digest", "data", "ciphertext", "encrypted", "base64", "block"}

// valueWords may follow any name that denotes a secret and add nothing to it: tokenValue, apiKeyString.
var valueWords = []string{"value", "string", "plaintext"}

// endings are endings of names that denote a secret only if the value looks random, with the kind of such
// names.
var endings = [...]struct {
	end  string
	kind Kind
}{
	{"token", Perhaps},
	{"signature", Perhaps},
	{"securehash", Perhaps},
	{"session", Perhaps},
	{"sessionid", Perhaps},
	{"credential", Perhaps},
	{"credentials", Perhaps},
	{"assertion", Perhaps},
	{"macaroon", Perhaps},
	{"ticket", Perhaps},
	{"captcharesponse", Perhaps},
	{"turnstileresponse", Perhaps},
	{"jwt", Perhaps},
	{"cred", Perhaps},
	{"creds", Perhaps},
	{"key", perhapsKey},
	{"seed", perhapsKey},
	{"keymaterial", perhapsKey},
	{"idtokenhint", Perhaps},
	{"code", perhapsKey},
}

// shortEndings are those of endings that are shorter than what hashEnd looks at, in lower case.
var shortEndings = []string{"jwt", "cred", "seed"}

// notBefore are words before one of the endings with which a name denotes something else: a position in a list
// ("nextToken"), a key of a table ("partitionKey"), or a public key.
var notBefore = strings.Fields("next page pagination continuation continue sync resume start list previous prev stop end " +
	"public pub idempotency idempotent cache surrogate partition routingpartition sort trace websocket object shard row primarypartition group lock " +
	"input output prompt completion max total cached reasoning dedup deduplication foreign map hot short sortby order i18n translation message label property storage query react " +
	"progress done result cancellation cancel request verify verification thought thinking byte source")

// byEnding classifies a normalized name by its ending (see endings).
func byEnding(name string) Kind {
	for i := range endings {
		start, ok := strings.CutSuffix(name, endings[i].end)
		if !ok {
			continue
		}
		for _, word := range notBefore {
			if strings.HasSuffix(start, word) {
				return Other
			}
		}
		return endings[i].kind
	}
	return Other
}

// issuedNames are names of members in the bodies of calls that issue secrets. Elsewhere they denote other things.
var issuedNames = SetOf("value result return response data key keys code token session ticket encoded payload plaintext signature jwt")

// storedNames are names of members in the bodies of calls to a store of secrets that have a secret. Elsewhere they denote
// other things.
var storedNames = SetOf("value secret payload plaintext textvalue stringvalue data raw computed content")

// IsProperty reports whether a name is that of a property of a secret, such as its identifier or when it was created.
func IsProperty(name string) bool {
	words := Words(name)
	return len(words) == 0 || propertyWords[words[len(words)-1]]
}

// propertyWords are last words of such names.
var propertyWords = SetOf("id ids uid uuid name names title description comment note notes labels tags version versions revision resourceversion " +
	"type kind format encoding algorithm alg status state path arn self link href url uri time date timestamp expires expiry expiration ttl " +
	"at by on created updated modified deleted count size length role creator namespace project environment region engine")

// Words returns the words of a name in lower case: listKeys has the words "list" and "keys".
func Words(name string) []string {
	var words []string
	from := 0
	flush := func(to int) {
		if to > from {
			words = append(words, strings.ToLower(name[from:to]))
		}
		from = to
	}
	for i := range len(name) {
		c := name[i]
		isLetter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		switch {
		case !isLetter:
			flush(i)
			from = i + 1
		case c >= 'A' && c <= 'Z' && i > from && name[i-1] >= 'a' && name[i-1] <= 'z':
			flush(i)
		}
	}
	flush(len(name))
	return words
}

// resultWords are ends of names of the result of a call, or of a value.
var resultWords = []string{"result", "return", "value"}

// maxIssued is the greatest length of the value of such a name, in bytes; longer ones are documents or images.
const maxIssued = 1 << 10

// isIssued reports whether a normalized name is one of issuedNames, or ends in one of resultWords.
func isIssued(name string) bool {
	return issuedNames[name] || hasSuffixOf(name, resultWords)
}
