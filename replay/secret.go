package replay

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"unwire/decode/jsontree"
	"unwire/decode/wire"
	"unwire/replay/credential"
)

// A Secret is a value that the capture lacks, because a placeholder was recorded in its place. It does
// not contain the value itself.
type Secret struct {
	// Where is the position of the secret in the request, such as "header authorization", "url" or
	// "up/0 1.8", i.e. field 1.8 of the client's frame 0.
	Where string `json:"where"`

	// From names the origin of the secret's value, such as "$UNWIRE_TOKEN" or a file; "" if it is
	// missing.
	From string `json:"from"`

	// Wants are the environment variables that can supply the secret.
	Wants []string `json:"wants"`

	// Omitted means that the secret is missing, and the request is sent without it.
	Omitted bool `json:"omitted,omitempty"`

	// Expires is when the token expires, in RFC 3339; "" if it does not expire or that is unknown.
	Expires string `json:"expires,omitempty"`

	// stale means that the token has expired, or expires so soon that it should not be used.
	stale bool
	// past means that the token has already expired.
	past bool
}

// secretVariable returns the environment variable that can supply the secret for a placeholder's tag,
// such as UNWIRE_SECRET_3F2A9C1B.
func secretVariable(tag string) string { return "UNWIRE_SECRET_" + strings.ToUpper(tag) }

// variables returns those names that are environment variables of unwire, i.e. begin with UNWIRE_.
func variables(names []string) []string {
	var out []string
	for _, n := range names {
		if strings.HasPrefix(n, "UNWIRE_") {
			out = append(out, n)
		}
	}
	return out
}

// unredact returns a message with its placeholders replaced by secrets. Placeholders of unknown secrets
// stay. changed means that at least one was replaced.
func (p *Plan) unredact(data []byte) (out []byte, changed bool, err error) {
	for _, m := range placeholdersIn(data, p.isJSON(&PlanFrame{proto: true})) {
		secret, ok := p.known(string(m[1]))
		if !ok {
			// it stays if Options.OmitSecrets is set
			continue
		}
		if data, err = p.fill(data, m[0], secret); err != nil {
			return data, changed, err
		}
		changed = true
	}
	return data, changed, nil
}

// known returns the secret for a placeholder's tag. tag may be the beginning of a longer tag.
func (p *Plan) known(tag string) (string, bool) {
	for t, secret := range p.tags {
		if strings.HasPrefix(t, tag) {
			return secret, true
		}
	}
	return "", false
}

// placeholdersIn returns the placeholders in a message, each with its tag. In protobuf, each field is
// searched by itself, because the bytes before and after a field may read like letters. Data that does not
// parse as protobuf is searched as text.
func placeholdersIn(data []byte, isJSON bool) (found [][][]byte) {
	if !credential.InBytes.Match(data) {
		return nil
	}
	t := wire.Parse(data, wire.Options{})
	if isJSON || t.Err() != nil {
		return credential.InBody.FindAllSubmatch(data, -1)
	}

	// A field comes before its own fields, whose placeholders count: the message around them may have a
	// placeholder with bytes that follow it.
	type span struct{ off, end int }
	var covered []span
	for c := int32(len(t.Nodes)) - 1; c > 0; c-- {
		if t.Node(c).Type != wire.Len {
			continue
		}
		payload := t.Payload(c)
		begin := t.Node(c).End - len(payload)
		for _, at := range credential.InBody.FindAllSubmatchIndex(payload, -1) {
			s := span{begin + at[0], begin + at[1]}
			if slices.ContainsFunc(covered, func(o span) bool { return s.off < o.end && o.off < s.end }) {
				continue
			}
			covered = append(covered, s)
			found = append(found, [][]byte{payload[at[0]:at[1]], payload[at[2]:at[3]]})
		}
	}
	slices.Reverse(found)
	return found
}

// innermost returns the node of the innermost length-delimited field whose payload contains b; 0, the
// root, if no field does.
func innermost(t *wire.Tree, b []byte) int32 {
	at := int32(0)
	for c := int32(1); int(c) < len(t.Nodes); c++ {
		if t.Node(c).Type == wire.Len && bytes.Contains(t.Payload(c), b) {
			at = c
		}
	}
	return at
}

// fill replaces one placeholder in a message by its secret. In JSON the secret is escaped; in protobuf,
// the lengths of the enclosing fields are adjusted.
func (p *Plan) fill(data, placeholder []byte, secret string) ([]byte, error) {
	isJSON := p.isJSON(&PlanFrame{proto: wire.Parse(data, wire.Options{}).Err() == nil})
	if len(placeholder) == len(secret) || isJSON {
		if isJSON {
			quoted := jsontree.Quote(secret)
			secret = string(quoted[1 : len(quoted)-1])
		}
		return bytes.Replace(data, placeholder, []byte(secret), 1), nil
	}
	t := wire.Parse(data, wire.Options{})
	at := innermost(t, placeholder)
	value := bytes.Replace(t.Payload(at), placeholder, []byte(secret), 1)
	return wire.Splice(t, []wire.Edit{{Op: wire.SetValue, Node: at, Data: value}})
}

// An expiredError reports a token that has expired or is about to expire.
type expiredError struct {
	// secret is the token, with the time at which it expires.
	secret Secret

	// past means that the token has already expired.
	past bool
}

// Error names the token, its source, and when it expires.
func (e *expiredError) Error() string {
	if e.past {
		return fmt.Sprintf("the token of %s, from %s, expired at %s", e.secret.Where, e.secret.From, e.secret.Expires)
	}
	return fmt.Sprintf("the token of %s, from %s, expires at %s, which leaves less than %s", e.secret.Where, e.secret.From, e.secret.Expires, credential.LeastLife)
}

// Is makes the error match both ErrExpired and ErrCredentials.
func (e *expiredError) Is(target error) bool {
	return target == credential.ErrExpired || target == credential.ErrCredentials
}
