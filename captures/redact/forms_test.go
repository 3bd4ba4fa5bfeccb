package redact

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"unwire/captures"
)

// The values of the forms: made up, of no vendor's shape.
const (
	formValue = "Zq7f3bMadeUp9d41xKw2"
	formWord  = "correct-horse"
	formCode  = "493817"
)

// A secretForm is a place in which a secret stands. In it, $S is formValue, $W a password of
// words, $C a code of digits, $B the base64 of $S, and $P(n) n made-up letters and digits.
type secretForm struct {
	class string

	// place is "header", with the name before the first colon, "url", "body" or
	// "multipart".
	place string

	forms []string
}

// secretForms are collected from the documentation of vendors and protocols. None comes from
// the rules that are embedded.
var secretForms = []secretForm{
	{"header names", "header", []string{
		"Ocp-Apim-Subscription-Key: $S", "X-Functions-Key: $S", "X-Session-Id: $S", "jwt: $S", "DPoP: $S",
		"X-Goog-IAP-JWT-Assertion: $S", "Cf-Access-Jwt-Assertion: $S", "X-Accesskey: $S", "X-Hub-Signature-256: sha256=$S",
		"X-Slack-Signature: v0=$S", "Stripe-Signature: t=1,v1=$S", "X-Twilio-Signature: $S", "X-Signature: $S", "Signature: $S",
		"X-Auth: $S", "X-Api-Secret: $S", "X-RapidAPI-Key: $S", "X-Master-Key: $S", "X-Parse-REST-API-Key: $S", "X-Algolia-API-Key: $S",
		"DD-APPLICATION-KEY: $S", "X-Amzn-Oidc-Data: $S", "X-Amzn-Oidc-Accesstoken: $S", "X-MS-Client-Principal: $S",
		"X-Plex-Token: $S", "Private-Token: $S", "X-Session: $S", "Session-Id: $S", "sessionid: $S", "X-OTP: $C", "X-Password: $W",
		"X-Auth-Password: $W", "X-Auth-Key: $S", "X-App-Key: $S", "apikey: $S", "x-apikey: $S", "X-Access-Token: $S", "X-Vault-Token: $S",
		"X-Aws-Ec2-Metadata-Token: $S", "X-Shopify-Access-Token: $S", "X-Auth-Signature: $S", "X-Hmac: $S", "X-Sid: $S",
		"X-Passcode: $C", "X-User-Jwt: $S", "X-ID-Token: $S", "X-Credential: $S", "X-Service-Key: $S", "X-Forwarded-Access-Token: $S",
		"Authentication-Info: Bearer $S", "X-Set-Session: $S", "Set-Cookie2: a=$S", "X-CSRFToken: $S", "X-Secret: $S",
		"X-Redmine-API-Key: $S", "X-GitHub-OTP: $C", "X-Wsse: UsernameToken Username=\"u\", PasswordDigest=\"$S\"",
		"X-Original-Url: /cb?code=$S", "Refresh: 0; url=https://h/?access_token=$S", "Link: <https://h/?api_key=$S>; rel=next",
		"Authorization: AWS4-HMAC-SHA256 Credential=A/x, Signature=$S", "Authorization: Digest username=\"u\", response=\"$S\"",
	}},
	{"gRPC binary metadata", "header", []string{
		"authorization-bin: $B", "x-session-token-bin: $B", "x-api-key-bin: $B", "x-jwt-bin: $B", "x-credentials-bin: $B",
		"x-context-bin: $J",
	}},
	{"WebSocket protocols", "header", []string{
		"Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.$S, base64.binary.k8s.io",
		"Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.$S", "Sec-WebSocket-Protocol: access_token, $S",
		"Sec-WebSocket-Protocol: graphql-ws, bearer.$S", "Sec-WebSocket-Protocol: Bearer, $S", "Sec-WebSocket-Protocol: auth-$S",
		"Sec-WebSocket-Protocol: chat, $S",
	}},
	{"URLs", "url", []string{
		"https://h/a;jsessionid=$S?x=1", "https://h/a;jsessionid=$S/b", "https://h/a;token=$S", "https://h/?session=$S", "https://h/?sas=$S",
		"https://h/?SAMLResponse=$S", "https://h/?SAMLRequest=$S", "https://h/?login_token=$S", "https://h/?refresh=$S", "https://h/?jwt=$S",
		"https://h/?PHPSESSID=$S", "https://h/?otp=$C", "https://h/?pin_code=$C", "https://h/?reset_token=$S", "https://h/?invite_token=$S",
		"https://h/?magic=$S", "https://h/?hmac=$S", "https://h/?st=2020&sig=$S", "https://h/?subscription-key=$S", "https://h/?appkey=$S",
		"https://h/?client_assertion=$S", "https://h/?verification_code=$C", "https://h/?u=1#id_token=$S", "https://h/#/cb?access_token=$S",
		"https://h/?next=https://i/?access_token=$S", "https://h/?next=https%3A%2F%2Fi%2F%3Fsession%3D$S",
		"https://h/?next=https%253A%252F%252Fi%252F%253Faccess_token%253D$S", "https://h/?user=a&pass=$W", "https://h/?auth=$S",
		"https://h/?access%5Ftoken=$S", "https://h/?user%5Bpassword%5D=$W", "https://h/?user[password]=$W", "https://h/?oauth_token=$S",
		"https://h/?oauth_signature=$S", "https://h/?X-Goog-Signature=$S", "https://h/?GoogleAccessId=a&Signature=$S", "https://h/?accessKey=$S",
		"https://h/?apiToken=$S", "https://h/?csrf_token=$S", "https://h/?ticket=$S", "https://h/?device_code=$S", "https://h/?sessionKey=$S",
		"wss://h/ws?token=$S", "https://h/?secret_key=$S", "https://h/?authuser=1&sid=$S", "https://h/?x=1;access_token=$S",
	}},
	{"JSON", "body", []string{
		`{"pwd":"$W"}`, `{"pass":"$W"}`, `{"passwords":["$W"]}`, `{"passwords":["a","$W"]}`, `{"tokens":["$S"]}`, `{"password":{"value":"$W"}}`,
		`{"credentials":{"type":"x","secret":"$W"}}`, `{"secret":{"current":"$W","previous":null}}`, `{"name":"password","value":"$W"}`,
		`{"name": "API_KEY", "value": "$S"}`, `{"key":"access_token","value":"$S"}`, `{"sessionId":"$S"}`, `{"session_id":"$S"}`,
		`{"session":"$S"}`, `{"otp":"$C"}`, `{"totp":"$C"}`, `{"passcode":"$C"}`, `{"mfaCode":"$C"}`, `{"verificationCode":"$C"}`,
		`{"pass\u0077ord":"$W"}`, `{"access\u005ftoken":"$S"}`, `{"password":"a\/$W"}`, `{"password":"a\"$W"}`, `{"password":"\u0061$W"}`,
		`{"password"  :  "$W"}`, "{\"password\":\n\t\"$W\"}", `{"user":{"auth":{"password":"$W"}}}`, `{"x":"{\"password\":\"$W\"}"}`,
		`{"x":"{\"y\":\"{\\\"password\\\":\\\"$W\\\"}\"}"}`, `{"sid":"$S"}`, `{"jwt":"$S"}`, `{"client_assertion":"$S"}`,
		`{"appKey":"$S"}`, `{"authKey":"$S"}`, `{"signingKey":"$S"}`, `{"subscriptionKey":"$S"}`, `{"masterKey":"$S"}`, `{"accountKey":"$S"}`,
		`{"csrfToken":"$S"}`, `{"userToken":"$S"}`, `{"resetToken":"$S"}`, `{"deviceToken":"$S"}`, `{"oauthToken":"$S"}`, `{"botToken":"$S"}`,
		`{"AccessKeyId":"$S"}`, `{"connectionString":"Server=h;AccountKey=$S"}`, `{"codeVerifier":"$S"}`, `{"device_code":"$S"}`,
		`{"recoveryCodes":["$S","$S"]}`, `{"mnemonic":"$W"}`, `{"Access Token":"$S"}`, `{"headers":{"X-Api-Key":"$S"}}`,
		`{"headers":[["authorization","Bearer $S"]]}`, `{"cookies":[{"name":"sid","value":"$S"}]}`, `{"url":"https:\/\/h\/?access_token=$S"}`,
		`{"url":"https://h/?a=1\u0026access_token=$S"}`, `{'password': '$W'}`, `{password: "$W"}`, `{"SAMLResponse":"$S"}`, `{"db_password":"$W"}`,
		`{"passphrase":"$W"}`, `{"sessionKey":"$S"}`, `{"userPassword":"$W"}`, `{"secretString":"$W"}`,
	}},
	{"multipart", "multipart", []string{
		"name=\"password\"\r\n\r\n$W", "name=\"api_key\"\r\n\r\n$S", "name=password\r\n\r\n$W",
		"name=\"token\"\r\nContent-Type: text/plain\r\n\r\n$S", "name=\"user[password]\"\r\n\r\n$W",
	}},
	{"XML", "body", []string{
		"<password>$W</password>", "<a><Password>$W</Password></a>", "<ns:password>$W</ns:password>", `<wsse:Password Type="x#PasswordText">$W</wsse:Password>`,
		"<accessToken>$S</accessToken>", `<user password="$W"/>`, `<add key="apiKey" value="$S"/>`, "<SessionToken>$S</SessionToken>",
		`<password><![CDATA[$W]]></password>`, `<a apiKey='$S'>`, "<SecretAccessKey>\n$S\n</SecretAccessKey>", `<input type="hidden" name="csrf_token" value="$S">`,
		`<string name="password">$W</string>`, `<key>password</key><string>$W</string>`,
	}},
	{"YAML", "body", []string{
		"user: a\npassword: $W\n", "api_key: \"$S\"\n", "  client-secret: '$W'\n", "- token: $S\n", "env:\n- name: DB_PASSWORD\n  value: $W\n",
		"password: |\n  $W\n", "password: >-\n  $W\n", "{user: a, password: $W}", "passwords:\n  - $W\n", "secretKey:   $S\n",
	}},
	{"GraphQL", "body", []string{
		`mutation { login(user: "a", password: "$W") { id } }`, `{"query":"mutation { login(password: \"$W\") { id } }"}`,
		`{"variables":{"input":{"password":"$W"}}}`, `mutation { a(input: {apiKey: "$S"}) { id } }`, `mutation { a(token: "$S") }`,
	}},
	{"lines", "body", []string{
		"DB_PASSWORD=$W\n", "export API_KEY=$S\n", "AWS_SECRET_ACCESS_KEY=\"$S\"\n", "SECRET_KEY='$W'\n", "a=1\nTOKEN=$S", "MYSQL_PWD=$W", "PASS=$W\n",
		"password = $W\n", "api_key := \"$S\"", "set PASSWORD=$W\r\n", "--password=$W", "--token $S", "-p password=$W",
		"Server=h;Database=d;Password=$W;", "DefaultEndpointsProtocol=https;AccountKey=$S;", "//registry/:_authToken=$S",
		"const apiKey = \"$S\";", "spring.datasource.password=$W",
	}},
	{"header and cookie dumps", "body", []string{
		"GET / HTTP/1.1\r\nAuthorization: Bearer $S\r\n", "Authorization: Basic $S\r\n", "authorization: token $S\n", "X-Api-Key: $S\r\n",
		"Cookie: sid=$S\r\n", "Cookie: a=1; session=$S", "Set-Cookie: id=$S; Path=/\r\n", "curl -H 'X-Api-Key: $S' https://h", "curl -H \"Cookie: s=$S\"",
		"curl -u user:$W https://h", "> authorization: Bearer $S", "Proxy-Authorization: Basic $S", "Ocp-Apim-Subscription-Key: $S",
		"document.cookie=\"sid=$S; path=/\"", "X-Session-Id: $S\n", "-b 'sid=$S'", `{"Cookie":"a=$S; b=c"}`,
	}},
	{"names and values with a space", "body", []string{
		"password \"$W\"\n", "storePassword '$W'\n", "requirepass A1-$W\n", "set password $W\n", "\tpre-shared-key ascii-text \"$S\"\n",
		"10.0.0.1 : PSK \"$W\"\n", "mary : EAP \"$W\"\n", "snmp-server community $W RO\n", "stats auth admin:A1-$W\n", "ENV DB_PASSWORD A1-$W\n",
		"aws configure set aws_secret_access_key $S\n", "keytool -srcstorepass A1-$W -list\n", "the password Ab1-$W works", "proxy_set_header X-Api-Key $S;\n",
		"proxy_set_header Authorization \"Basic $S\";\n", "userPassword:: $B\n", "password = x,y;$W\n", "cache_peer h login=mary:A1-$W\n",
	}},
	{"commands", "body", []string{
		"mysql -u root -p$W db\n", "sshpass -p '$W' ssh h\n", "redis-cli -a $W ping\n", "docker login -u a -p $S h\n", "ldapsearch -x -w $W\n",
		"a1 LOGIN mary \"$W\"\r\n", "AUTH PLAIN AG1hcnkA$S\r\n", `{"args":["--token","$S"]}`, `requests.get(u, auth=("mary", "$W"))`,
	}},
	{"records", "body", []string{
		"# Netscape HTTP Cookie File\n.h.example\tTRUE\t/\tTRUE\t1800000000\tsid\t$S\n", "WIFI:T:WPA;S:home;P:$W;;", "db.example.com:5432:app:mary:$W\n",
		"Private-Lines: 1\n$S\nPrivate-MAC: 0\n", "Your code is $C.", "Your login code: $C", "Use code $C to sign in.",
	}},
	{"owners and calls", "body", []string{
		"<AdministratorPassword><Value>$W</Value></AdministratorPassword>", "<Key>Password</Key><Value ProtectInMemory=\"True\">$W</Value>",
		`<saml:Attribute Name="urn:a:apiToken"><saml:AttributeValue>$S</saml:AttributeValue></saml:Attribute>`,
		`{"authToken":[{"_content":"$S"}]}`, `{"method":"personal_unlockAccount","params":["0x7","$W",300]}`, `{"name":"A","value":"$W","secure":true}`,
	}},
	{"vendor prefixes", "body", []string{
		"glpat-$P(20)", "glptt-$H(40)", "dapi$H(32)", "doo_v1_$H(64)", "dor_v1_$H(64)", "PMAK-$H(24)-$H(34)", "pscale_tkn_$P(43)", "rubygems_$H(48)",
		"shpss_$H(32)", "shpca_$H(32)", "sq0atp-$P(22)", "sq0csp-$P(43)", "sntrys_$P(120)", "sntryu_$H(64)", "glsa_$P(32)_$H(8)", "glc_$P(60)",
		"xkeysib-$H(64)-$P(16)", "hvs.$P(90)", "hvb.$P(150)", "pul-$H(40)", "pnu_$P(36)", "EZAK$P(54)", "LTAI$P(20)", "AGE-SECRET-KEY-1$U(58)",
		"dp.pt.$P(43)", "ops_eyJ$P(260)", "duffel_live_$P(43)", "tfp_$P(60)", "rdme_$L(70)", "fo1_$P(43)", "sk-ant-api03-$P(93)AA", "sk-or-v1-$H(64)",
		"tvly-$P(32)", "nfp_$P(36)", "figd_$P(40)", "ATATT3xFfGF0$P(180)", "ghu_$P(36)", "AKIA$U(16)", "A3TX$U(16)", "ya29.$P(60)", "1//0$P(60)",
		"dckr_pat_$P(27)", "dckr_oat_$P(32)", "secret_$P(43)", "ntn_$P(46)", "lin_oauth_$H(64)", "phc_$P(43)", "phx_$P(43)", "sbp_$H(40)",
		"sb_secret_$P(31)", "vercel_blob_rw_$P(40)", "pat-na1-$H(36)", "pat$P(14).$H(64)", "EAAC$P(110)", "NRAK-$U(27)", "xoxe.xoxp-1-$P(163)",
		"https://hooks.slack.com/services/T$U(8)/B$U(8)/$P(24)", "https://discord.com/api/webhooks/12345678901234567/$P(68)",
		"gsk_$P(52)", "r8_$P(37)", "jina_$P(60)", "voyage-$P(44)", "pcsk_$P(60)", "fw_$P(24)", "csk-$P(48)", "wandb_v1_$P(77)", "cio_$P(40)",
		"apify_api_$P(36)", "CFPAT-$P(43)", "key-$H(32)", "rnd_$P(32)", "FlyV1 fm2_$P(120)", "tskey-auth-$P(11)-$P(32)", "oy2$P(43)",
		"whsec_$P(32)", "rk_live_$P(24)", "sk_prod_$P(24)", "pk.eyJ1$P(60).$P(22)", "sk.eyJ1$P(60).$P(22)", "bkua_$H(40)", "CCIPAT_$P(22)_$H(40)",
		"atlasv1.$P(60)", "x.atlasv1.$P(65)", "v1.0-$H(24)-$H(146)", "shippo_live_$H(40)", "sk_$H(48)", "pypi-AgEIcHlwaS5vcmc$P(100)", "AIza$P(35)",
		"GOCSPX-$P(28)", "BBDC-$P(44)", "ATBB$P(32)", "ATCTT3xFfGN0$P(180)", "SCW$U(17)", "sha256~$P(43)", "aio_$P(28)", "nvapi-$P(64)",
		"npm_$P(36)", "cfut_$P(48)", "hf_$P(34)", "api_org_$P(34)", "rpa_$U(40)",
	}},
}

// spell returns a form with its values, and what must not be left of it.
func spell(f string) (text string, secrets []string) {
	keep := func(mark, value string) {
		if strings.Contains(f, mark) {
			f = strings.ReplaceAll(f, mark, value)
			secrets = append(secrets, value)
		}
	}
	keep("$S", formValue)
	keep("$W", formWord)
	keep("$C", formCode)
	keep("$G", "7d9f3c1a-52b8-4e06-9a4d-c3f81b60e27d")
	keep("$B", base64.RawStdEncoding.EncodeToString([]byte("\x01"+formValue)))
	keep("$J", base64.RawStdEncoding.EncodeToString([]byte(`{"password":"`+formWord+`"}`)))
	for alphabet, chars := range map[string]string{"$P": "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", "$H": "0123456789abcdef", "$U": "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ", "$D": "0123456789", "$L": "0123456789abcdefghijklmnopqrstuvwxyz"} {
		for {
			i := strings.Index(f, alphabet+"(")
			if i < 0 {
				break
			}
			var n int
			_, _ = fmt.Sscanf(f[i+3:], "%d)", &n)
			v := make([]byte, n)
			for k := range v {
				v[k] = chars[(k*k*7+k*11+n+i)%len(chars)]
			}
			end := i + strings.IndexByte(f[i:], ')') + 1
			f = f[:i] + string(v) + f[end:]
			if n >= 16 {
				secrets = append(secrets, string(v))
			}
		}
	}
	return f, secrets
}

// redactForm redacts a form where it stands, with a new Redactor.
func redactForm(place, text string) string {
	r := New(Options{})
	switch place {
	case "header":
		name, value, _ := strings.Cut(text, ": ")
		return r.Headers(captures.Headers{{Name: name, Value: value}})[0].Value
	case "url":
		return r.redactURL(text)
	case "multipart":
		h := captures.Headers{{Name: "content-type", Value: "multipart/form-data; boundary=b"}}
		return string(join(redactBody(r, h, []byte("--b\r\nContent-Disposition: form-data; "+text+"\r\n--b--\r\n"))))
	}
	return string(join(redactBody(r, nil, []byte(text))))
}

// Every form of a secret is replaced, where it stands.
func TestSecretForms(t *testing.T) {
	all, missed := 0, 0
	for _, c := range secretForms {
		bad := 0
		for _, f := range c.forms {
			text, secrets := spell(f)
			got := redactForm(c.place, text)
			left := slices.ContainsFunc(secrets, func(s string) bool { return isLeft(got, s) })
			if left {
				bad++
				t.Errorf("%s: %s becomes %s", c.class, f, got)
			}
		}
		t.Logf("%-26s %3d of %3d", c.class, len(c.forms)-bad, len(c.forms))
		all, missed = all+len(c.forms), missed+bad
	}
	t.Logf("%-26s %3d of %3d", "all", all-missed, all)
}

// A form may end anywhere, also directly after a sign that a rule expects more after: a URL of webhooks after its host.
// What is before a value stays as it is.
func TestFormsEndAnywhere(t *testing.T) {
	cuts := 0
	for _, c := range secretForms {
		for _, f := range c.forms {
			text, secrets := spell(f)
			value := len(text)
			for _, s := range secrets {
				value = min(value, max(0, strings.Index(text, s)))
			}
			for n := 1; n <= len(text); n++ {
				if !strings.ContainsRune("/.:=?&;\"' \\,-_", rune(text[n-1])) {
					continue
				}
				cuts++
				if got := redactForm(c.place, text[:n]); n <= value && c.place == "url" && got != text[:n] {
					t.Errorf("%s becomes %s", text[:n], got)
				}
			}
		}
	}
	t.Logf("%d texts", cuts)
}

func utf16Of(s string, bigEndian bool) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		if bigEndian {
			b = append(b, byte(u>>8), byte(u))
		} else {
			b = append(b, byte(u), byte(u>>8))
		}
	}
	return string(b)
}

func hexWith(s, separator, format string) string {
	var parts []string
	for i := range len(s) {
		parts = append(parts, fmt.Sprintf(format, s[i]))
	}
	return strings.Join(parts, separator)
}

// What a header gave away is found again in other spellings.
func TestLearnedForms(t *testing.T) {
	const secret = "made/up+\"token\" of=mine"
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	forms := map[string]string{
		"lower-case percent":   strings.ToLower(url.QueryEscape(secret)),
		"JSON":                 `made/up+\"token\" of=mine`,
		"JSON with slashes":    `made\/up+\"token\" of=mine`,
		"JSON for HTML":        `made/up\u002b\u0022token\u0022 of\u003dmine`,
		"JSON, all escaped":    hexWith(secret, "", `\u%04x`),
		"hex with colons":      hexWith(secret, ":", "%02x"),
		"hex with spaces":      hexWith(secret, " ", "%02x"),
		"HEX with colons":      hexWith(secret, ":", "%02X"),
		"HEX with dashes":      hexWith(secret, "-", "%02X"),
		"hex of C":             hexWith(secret, "", `\x%02x`),
		"hex with 0x":          hexWith(secret, ", ", "0x%02x"),
		"percent, all":         hexWith(secret, "", "%%%02X"),
		"percent, all, lower":  hexWith(secret, "", "%%%02x"),
		"percent twice":        url.QueryEscape(url.QueryEscape(secret)),
		"base64":               b64(secret),
		"base64 twice":         b64(b64(secret)),
		"base64 twice, 1":      b64(b64("x" + secret + "y")),
		"base64 twice, within": b64("ab" + b64("xy"+secret+"zz") + "c"),
		"base32":               base32.StdEncoding.EncodeToString([]byte(secret)),
		"base32, 1":            base32.StdEncoding.EncodeToString([]byte("a" + secret)),
		"base32, 3":            base32.StdEncoding.EncodeToString([]byte("abc" + secret)),
		"UTF-16LE":             utf16Of(secret, false),
		"UTF-16BE":             utf16Of(secret, true),
		"XML":                  "made/up+&quot;token&quot; of=mine",
		"XML, decimal":         "made/up+&#34;token&#34; of=mine",
	}
	missed := 0
	for name, in := range forms {
		r := New(Options{})
		r.Headers(captures.Headers{{Name: "authorization", Value: "Bearer " + secret}})
		got := join(redactBody(r, nil, []byte("<<"+in+">>")))
		at := min(len(in)/2, 12)
		if bytes.Contains(got, []byte(in[at:len(in)-at/2-4])) || len(got) != len(in)+4 {
			missed++
			t.Errorf("%s: %q becomes %q", name, in, got)
		}
	}
	t.Logf("%d of %d", len(forms)-missed, len(forms))
}
