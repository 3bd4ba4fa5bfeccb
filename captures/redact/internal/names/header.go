package names

import (
	"slices"
	"strings"
)

// headerNames are names of header fields with secrets whose words do not reveal it, from the documentation of vendors.
var headerNames = SetOf("token apikey api-key x-auth authentication x-authentication x-authorization jwt dpop signature x-amzn-oidc-data " +
	"x-ms-client-principal x-wsse set-cookie2 authentication-info proxy-authentication-info session key " +
	"cst scnt verif-hash x-modhash x-honeycomb-team x-ovh-consumer x-pull x-jfrog-art-api x-ha-access x-identity-header x-wp-nonce " +
	"x-ig-www-claim x-2fa-approval accesslicensenumber x-verify ipn_hash ipn-hash")

// headerWords are words that denote a secret at the end of a header field's name.
var headerWords = SetOf("token secret password passwd passcode passphrase pwd credential credentials jwt authorization assertion sid " +
	"session sessionid sessiontoken accesskey apikey apitoken accesstoken hmac otp cookie signature sig bearer sas authkey appkey " +
	"auth sign crumb csrf xsrf macaroon apikeys credentialstring")

// anywhereWords are words that denote a secret wherever they are in the name of a header field, if it does not end in one
// of aboutWords.
var anywhereWords = SetOf("signature hmac macaroon sig password secret")

// proofWords are words that denote a secret in the name of a header field if its value looks random.
var proofWords = SetOf("captcha recaptcha hcaptcha turnstile proof attestation token apikey jwt credential credentials auth " +
	"authentication authorization authcode passcode otp")

// lastProofWords are such words if they end the name.
var lastProofWords = SetOf("webhook license licence refresh verification subscription invite invitation")

// aboutWords end the names of header fields that describe a secret, such as when it expires.
var aboutWords = SetOf("timestamp time date expires expiry expiration expire age ttl type algorithm alg id ids name url uri count limit " +
	"remaining reset used length size mode method status scope scopes realm enabled required region agent input index headers format " +
	"kind encoding hint policy flag level provider issuer audience source origin path domain email user username host version md5 keyid")

// fixedEnds are words at the end of a header field's name that number or qualify a value: x-signature-v3.
var fixedEnds = SetOf("v1 v2 v3 v4 1 2 3 256 512 sha1 sha256 sha512 ed25519 primary secondary current previous")

// compactEnds are the ends of words that were written without hyphens, as in X-EntityToken.
var compactEnds = []string{"token", "apikey", "secret", "secretkey", "accesskey", "authkey", "password", "passphrase", "signature"}

// SetOf returns the set of the words in a list, which are separated by spaces.
func SetOf(list string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// Header reports whether the whole value of a header field with this name is a secret. name is in lower case.
func (n *Names) Header(name string) bool { return n.HeaderKind(name) == Secret }

// HeaderKind classifies a header field by its name: Secret, Perhaps (a secret if the value looks random), or
// Other. name is in lower case.
//
// The last word decides, except that some words count anywhere, and that words which only number the value are
// skipped. The value alone never decides, because fields also carry identifiers that look random.
func (n *Names) HeaderKind(name string) Kind {
	if n.headers[name] {
		return Secret
	}
	// gRPC's binary metadata, and gRPC metadata in a gateway.
	name = strings.TrimPrefix(strings.TrimSuffix(name, "-bin"), "grpc-metadata-")
	if headerNames[name] {
		return Secret
	}
	kind := n.memberKind(name)
	if kind == Secret {
		return Secret
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	end := len(words)
	for end > 1 && fixedEnds[words[end-1]] {
		end--
	}
	switch {
	case end == 0, aboutWords[words[end-1]] && kind != Perhaps:
		return Other
	case aboutWords[words[end-1]]:
		// The whole name denotes a secret: vmware-api-session-id.
		return Perhaps
	}
	last, start := words[end-1], strings.Join(words[:end-1], "")
	switch {
	case last == "key":
		if isKeyHeader(start) {
			return Secret
		}
	case last == "token" && hasSuffixOf(start, notBefore):
	case headerWords[last], slices.ContainsFunc(words, func(w string) bool { return anywhereWords[w] }):
		return Secret
	case slices.ContainsFunc(compactEnds, func(e string) bool { return strings.HasSuffix(last, e) }):
		if !hasSuffixOf(strings.TrimSuffix(last, "token"), notBefore) {
			return Secret
		}
	case kind == Perhaps, lastProofWords[last], slices.ContainsFunc(words, func(w string) bool { return proofWords[w] }), hasKeyInside(words[:end]):
		return Perhaps
	}
	return Other
}

// memberKind classifies the name of a header field as that of a member, without "x-": Secret, Perhaps or Other.
func (n *Names) memberKind(name string) Kind {
	kind := n.Kind([]byte(name))
	if kind != Secret {
		kind = n.Kind([]byte(strings.TrimPrefix(name, "x-")))
	}
	switch kind {
	case Secret, code:
		return Secret
	case Perhaps:
		return Perhaps
	case perhapsKey, parameterOrKey:
		if !strings.HasSuffix(name, "id") {
			return Perhaps
		}
	}
	return Other
}

// hasKeyInside reports whether the words of a name speak of an API key before they end: x-vendor-api-key-integration.
func hasKeyInside(words []string) bool {
	for i, word := range words[:len(words)-1] {
		if word == "key" && i > 0 && (words[i-1] == "api" || words[i-1] == "access" || words[i-1] == "auth") {
			return true
		}
	}
	return false
}

// hasSuffixOf reports whether s ends in one of the words.
func hasSuffixOf(s string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(s, w) })
}

// isKeyHeader reports whether a header field named start + "-key" contains a user's API key, rather
// than the key of a cache or database entry.
func isKeyHeader(start string) bool {
	return !hasSuffixOf(start, []string{"idempotency", "idempotent", "cache", "surrogate", "partition", "routing", "sort", "request", "trace", "websocket", "object", "shard", "row", "public", "client", "group", "lock", "dedup", "deduplication"})
}

// CarriesSecret reports whether the value of a header field with this name always contains a secret. name is in
// lower case.
func (n *Names) CarriesSecret(name string) bool {
	switch name {
	case "authorization", "proxy-authorization", "cookie", "set-cookie":
		return true
	}
	return n.Header(name)
}
