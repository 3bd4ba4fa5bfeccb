package replay

import (
	"bytes"
	"fmt"
	"strings"

	"unwire/decode/jsontree"
	"unwire/decode/wire"
	"unwire/replay/credential"
)

// A Secret is a value that the capture holds a placeholder of.
type Secret struct {
	// "header authorization", "url", "up/0 1.8"
	Where string `json:"where"`
	// where its value comes from: "$UNWIRE_TOKEN", a file; "" if it is missing
	From string `json:"from"`
	// environment variables that could give it
	Wants []string `json:"wants"`
	// it is missing, and is done without
	Omitted bool `json:"omitted,omitempty"`
	// RFC 3339; of a token that says so
	Expires string `json:"expires,omitempty"`
	stale   bool
	past    bool // it has expired already
}

// secretVariable is the environment variable of the secret whose placeholder
// has a tag, wherever it stands: UNWIRE_SECRET_3F2A9C1B.
func secretVariable(tag string) string { return "UNWIRE_SECRET_" + strings.ToUpper(tag) }

// variables keeps the names of environment variables.
func variables(names []string) []string {
	var out []string
	for _, n := range names {
		if strings.HasPrefix(n, "UNWIRE_") {
			out = append(out, n)
		}
	}
	return out
}

// unredact puts the secrets into a message.
func (p *Plan) unredact(data []byte) (out []byte, changed bool, err error) {
	for _, m := range credential.InBody.FindAllSubmatch(data, -1) {
		secret, ok := p.known(string(m[1]))
		if !ok {
			continue // left as it is where Options.OmitSecrets says so
		}
		if data, err = p.fill(data, m[0], secret); err != nil {
			return data, changed, err
		}
		changed = true
	}
	return data, changed, nil
}

// known returns the secret of a tag that may be cut.
func (p *Plan) known(tag string) (string, bool) {
	for t, secret := range p.tags {
		if strings.HasPrefix(t, tag) {
			return secret, true
		}
	}
	return "", false
}

// innermost is the smallest field whose payload holds b; 0 if none does.
func innermost(t *wire.Tree, b []byte) int32 {
	at := int32(0)
	for c := int32(1); int(c) < len(t.Nodes); c++ {
		if t.Node(c).Type == wire.Len && bytes.Contains(t.Payload(c), b) {
			at = c
		}
	}
	return at
}

// fill puts one secret in place of its placeholder.
func (p *Plan) fill(data, placeholder []byte, secret string) ([]byte, error) {
	if len(placeholder) == len(secret) || p.isJSON() {
		if p.isJSON() {
			quoted := jsontree.Quote(secret)
			secret = string(quoted[1 : len(quoted)-1])
		}
		return bytes.Replace(data, placeholder, []byte(secret), 1), nil
	}
	t := wire.Parse(data, wire.Options{})
	at := innermost(t, placeholder)
	value := bytes.Replace(t.Payload(at), placeholder, []byte(secret), 1)
	return wire.Splice(t, []wire.Edit{{Op: wire.Set, Node: at, Data: value}})
}

// An expiredError says which token, and when.
type expiredError struct {
	secret Secret
	past   bool
}

func (e *expiredError) Error() string {
	if e.past {
		return fmt.Sprintf("the token of %s, from %s, expired at %s", e.secret.Where, e.secret.From, e.secret.Expires)
	}
	return fmt.Sprintf("the token of %s, from %s, expires at %s, which leaves less than %s", e.secret.Where, e.secret.From, e.secret.Expires, credential.LeastLife)
}

func (e *expiredError) Is(target error) bool {
	return target == credential.ErrExpired || target == credential.ErrCredentials
}
