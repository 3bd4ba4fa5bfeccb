package syntax

import (
	"bytes"

	"unwire/captures/redact/internal/charset"
	"unwire/captures/redact/internal/match"
	"unwire/captures/redact/internal/names"
)

// lookAhead is how many bytes after a member or parameter are searched for its siblings.
const lookAhead = 256

// keySiblings are names beside which a signature signs a request, as the messages of exchanges do: {"key":"…",
// "passphrase":"…", "signature":"…"}. Elsewhere a signature is data.
var keySiblings = namesOf("key apikey api_key apiKey api-key passphrase access_code accessKey access_key accessId access_id clientKey client_key apiToken api_token nonce merchant_id merchantId " +
	"amount orderId order_id orderCode order_code access_token accessToken instance_url appid app_id mid requestType request_token jwt nkey")

// paySiblings are names beside which a hash authenticates a payment. Elsewhere a hash names content.
var paySiblings = namesOf("app_id app_trans_id merchant merchant_id merchantId storename chargetotal txnid client_key merchantkey command currency amount total_amount totalAmount pg_total_amount orderId order_id transactionId transaction_id terminalId")

// cardSiblings are names beside which a number is that of a payment card.
var cardSiblings = namesOf("cvc cvv cvv2 cvn exp_month expMonth expiryMonth expirationMonth expiry_month expiration_month expiry expirationDate expiration_date expiryDate expiry_date securityCode security_code verification_value")

// codeSiblings are names beside which a random code is one of OAuth.
var codeSiblings = namesOf("grant_type grantType client_secret clientSecret redirect_uri redirectUri code_verifier codeVerifier")

// personSiblings are names beside which a code of digits is one that was sent to a person.
var personSiblings = namesOf("email phone phone_number phoneNumber mobile username user_name msisdn verification_id verificationId verification_sid request_id challenge_id challengeId challenge state_token stateToken mfa_token grant_type to recipient identifier phoneNo loginId")

// secrecyMarks are names of flags and types beside a value that tell whether it is kept secret, whatever its name is.
var secrecyMarks = namesOf("type Type sensitive masked isSecret is_secret secret secured isPassword encrypted secure protected isSensitive is_sensitive is_password confidential write_only writeOnly")

// namesOf returns the names in a list that is separated by spaces.
func namesOf(list string) [][]byte { return bytes.Fields([]byte(list)) }

// siblingsOf returns the names that decide about a value with such a name; nil if none do.
func siblingsOf(name []byte) [][]byte {
	switch string(lastPart(name)) {
	case "signature", "sign", "sig", "Signature", "Sign", "SIGN", "signatureHash", "checksum", "checkSum", "CHECKSUMHASH":
		return keySiblings
	case "number":
		return cardSiblings
	case "hash", "hashExtended", "Hash", "HASH", "mac", "control":
		return paySiblings
	case "code", "Code":
		return personSiblings
	case "value", "Value":
		return secrecyMarks
	}
	if bytes.HasSuffix(name, []byte("hash")) || bytes.HasSuffix(name, []byte("Hash")) {
		return paySiblings
	}
	return nil
}

// lastPart returns the last part of a name such as card[number]; the whole name if it has no parts.
func lastPart(name []byte) []byte {
	if i := bytes.LastIndexByte(name, '['); i > 0 && name[len(name)-1] == ']' {
		return name[i+1 : len(name)-1]
	}
	return name
}

// leastCode is the smallest length of a code of OAuth, in bytes; shorter ones are for persons.
const leastCode = 16

// withSiblings decides about the value b[from:end] of a name that siblingsOf knows by the members or parameters beside
// it. at is the index of the name. final and flush are as for Finder.At.
func withSiblings(b []byte, at, from, end int, name []byte, final, flush bool) match.State {
	switch {
	case end == len(b) && !final && !flush && end-from < match.MaxSecret:
		return match.Undecided
	case end-from >= match.MaxSecret || !mayHaveSiblings(name, b[from:end]):
		return match.Nothing
	}
	before, after := b[max(0, at-lookBack):at], b[end:min(len(b), end+lookAhead)]
	siblings := siblingsOf(name)
	switch {
	case isValueName(name):
		siblings = nil
		if isMarkedSecret(before, after) {
			return match.Found
		}
	case string(name) == "code" && end-from >= leastCode:
		siblings = codeSiblings
	}
	for _, sibling := range siblings {
		if hasName(before, sibling) || hasName(after, sibling) {
			return match.Found
		}
	}
	if !final && !flush && len(after) < lookAhead {
		return match.Undecided
	}
	return match.Nothing
}

// isMarkedSecret reports whether a flag or a type in the same object, or the same form, tells that a value is kept secret:
// "sensitive":true, "type":"SecureString". before and after are the pieces around the value.
func isMarkedSecret(before, after []byte) bool {
	before = before[bytes.LastIndexByte(before, '{')+1:]
	if i := bytes.IndexByte(after, '}'); i >= 0 {
		after = after[:i]
	}
	for _, piece := range [...][]byte{before, after} {
		for _, mark := range secrecyMarks {
			i := bytes.Index(piece, mark)
			if i < 0 {
				continue
			}
			if word := textAfter(piece[i+len(mark):]); string(word) == "true" || isSecretType(word) {
				return true
			}
		}
	}
	return false
}

// mayHaveSiblings reports whether a value looks as one of a name that siblingsOf knows does if it is a secret.
func mayHaveSiblings(name, value []byte) bool {
	if isValueName(name) {
		return len(value) >= leastMarked
	}
	switch string(lastPart(name)) {
	case "code", "Code":
		return charset.LooksPIN(value) && len(value) <= 8 || len(value) >= leastCode && charset.LooksRandom(value)
	case "number":
		return len(value) >= 12 && len(value) <= 23 && len(bytes.Trim(value, "0123456789 -")) == 0
	}
	return len(value) >= 32 && charset.LooksRandom(value)
}

// hasName reports whether a piece of JSON or of a form has a member or parameter of a name, in any case.
func hasName(b, name []byte) bool {
	b, name = bytes.ToLower(b), bytes.ToLower(name)
	for {
		i := bytes.Index(b, name)
		if i < 0 {
			return false
		}
		end := i + len(name)
		if i > 0 && end < len(b) && (b[i-1] == '"' && b[end] == '"' || b[i-1] == '&' && b[end] == '=' || b[i-1] == '[' && b[end] == ']') || i == 0 && end < len(b) && b[end] == '=' {
			return true
		}
		b = b[end:]
	}
}

// needsSiblings reports whether the siblings of a name decide about its value, because its kind does not.
func needsSiblings(kind names.Kind, name []byte) bool {
	return (kind == names.Other || kind == names.Parameter) && siblingsOf(name) != nil
}
