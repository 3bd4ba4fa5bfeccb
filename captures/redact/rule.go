package redact

import "unwire/captures/redact/internal/match"

// A Rule is how a secret was recognized: by the name of a header field ("header"), of a parameter or an
// assignment ("parameter"), or of a JSON member or an XML element ("member"); by the shape of an API key
// ("key-shape"); as the body of a PEM private key ("private-key") or the password in a URL ("url-password"); or
// because it was learned or configured ("seen").
type Rule = match.Rule

// RuleUnsearched marks bytes that could not be searched, instead of a secret; Name is the reason.
const RuleUnsearched Rule = "not-searched"
