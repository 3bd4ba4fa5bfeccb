package names

import "strings"

// Header reports whether the whole value of a header field with this name is a secret. name is in lower case.
func (n *Names) Header(name string) bool {
	if n.headers[name] {
		return true
	}
	// gRPC's binary metadata.
	name = strings.TrimSuffix(name, "-bin")
	switch name {
	case "token", "api-key", "apikey", "x-auth", "authentication", "x-authentication", "x-authorization", "jwt", "dpop", "signature",
		"x-amzn-oidc-data", "x-ms-client-principal", "x-wsse", "set-cookie2", "authentication-info", "proxy-authentication-info", "session", "key":
		return true
	}
	start, word := "", name
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		start, word = name[:i], name[i+1:]
	}
	switch word {
	case "token", "secret", "password", "passwd", "passcode", "pwd", "credential", "credentials", "jwt", "authorization", "assertion", "sid",
		"session", "sessionid", "sessiontoken", "accesskey", "apikey", "apitoken", "accesstoken", "hmac", "otp", "cookie", "signature",
		"bearer", "sas", "authkey", "appkey", "auth", "sign", "crumb":
		return true
	case "256", "sha256":
		return strings.HasSuffix(start, "-signature") || strings.HasSuffix(start, "-hmac")
	case "key":
		return isKeyHeader(start)
	}
	return n.Kind([]byte(name)) == Secret || n.Kind([]byte(strings.TrimPrefix(name, "x-"))) == Secret
}

// isKeyHeader reports whether a header field named start + "-key" contains a user's API key, rather
// than the key of a cache or database entry.
func isKeyHeader(start string) bool {
	for _, word := range []string{"idempotency", "idempotent", "cache", "surrogate", "partition", "routing", "sort", "request", "trace", "websocket", "object", "shard", "row", "public", "client", "group", "lock", "dedup", "deduplication"} {
		if strings.HasSuffix(start, word) {
			return false
		}
	}
	return true
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
