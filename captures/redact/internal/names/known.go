package names

import "strings"

// wholeNames are names that say it as a whole, normalised.
var wholeNames = kindsOfNames(map[Kind]string{
	Secret: "cookie setcookie credentials xamzsignature xamzsecuritytoken xgoogsignature pwd pass passcode otp totp otpcode totpcode " +
		"mfacode mfatoken twofactorcode 2facode verificationcode onetimecode onetimepassword recoverycode recoverycodes backupcode backupcodes " +
		"mnemonic seedphrase recoveryphrase dbpass userpass smtppass mysqlpwd pgpass dbpwd userpwd sessionid sessionkey jsessionid phpsessid " +
		"samlresponse samlrequest samlassertion clientassertion codeverifier devicecode authcode authorizationcode secretstring " +
		"secretbinary secretvalue dpop accesskeyid appkey usersession passworddigest smscode pincode logincode",
	Perhaps: "token tokens jwt auth bearer csrf xsrf session sid assertion accesstokens magiclink hmac",
	Parameter: "key code sig signature pwd pass xamzcredential xgoogcredential sas oauthsignature oauthverifier " +
		"accesskey samlart ticket",
	PerhapsParameter: "refresh login magic refreshkey invite verify nonce tok sess otk",
})

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

// families are the names of secrets that end alike, after one of several words.
var families = [...]struct {
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
