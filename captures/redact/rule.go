package redact

import "unwire/captures/redact/internal/match"

// A Rule says by what a secret was found: by the name of a header field ("header"), of a
// parameter or an assignment ("parameter"), or of a JSON member or an XML element ("member");
// by the shape of an issuer's keys ("key-shape"); as the body of a PEM private key
// ("private-key") or the password in a URL ("url-password"); or because something else gave it
// away or named it ("seen").
type Rule = match.Rule

// RuleUnsearched is no secret: bytes that the search could not look into; Name says why.
const RuleUnsearched Rule = "not-searched"
