package redact

// A Rule says by what a secret was found.
type Rule string

const (
	ruleHeader Rule = "header" // the header field's name tells

	// The name of a parameter of a URL or a form does.
	ruleParameter Rule = "parameter"

	ruleMember Rule = "member" // the name of a JSON member does

	// It looks like a key or a token of some issuer.
	ruleShape Rule = "key-shape"

	rulePrivateKey  Rule = "private-key"  // the body of a PEM private key
	ruleURLPassword Rule = "url-password" // it stands before the host of a URL

	// A header, a parameter or a member gave it away elsewhere, or it was named.
	ruleSeen Rule = "seen"

	// RuleUnsearched is no secret: bytes that the search could not look into; Name says why.
	RuleUnsearched Rule = "not-searched"
)
