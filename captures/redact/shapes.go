package redact

import "unwire/captures/profile"

// A charset is a set of bytes.
type charset [256]bool

func (s *charset) has(c byte) bool { return s[c] }

func charsetOf(chars string) *charset {
	var s charset
	for i := range len(chars) {
		s[chars[i]] = true
	}
	return &s
}

const (
	digits  = "0123456789"
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// Read-only after this.
var (
	alnumChars  = charsetOf(digits + letters)
	upperChars  = charsetOf(digits + "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	wordChars   = charsetOf(digits + letters + "_-")  // base64url
	dottedChars = charsetOf(digits + letters + "_-.") // a JWT

	// tokenChars are those of RFC 6750 and others that tokens have.
	tokenChars = charsetOf(digits + letters + "_-.~+/=%|:")

	// base64Chars are those of base64 with its line breaks, or their escapes.
	base64Chars = charsetOf(digits + letters + "+/=\r\n\\")

	hexChars     = charsetOf("0123456789abcdef")
	urlPathChars = charsetOf(digits + letters + "_-/")

	// nameChars are those of the names of parameters and members.
	nameChars = charsetOf(digits + letters + "_-.")

	// userChars are those of a URL's userinfo.
	userChars = charsetOf(digits + letters + "_-.~!$&'()*+%=")
)

// A shape is what the keys of one issuer look like: a prefix, then a run of
// characters of a set.
type shape struct {
	prefix   string
	chars    *charset
	min, max int  // of the run; max 0: as long as it goes
	digit    bool // there must be one, because the prefix occurs in words
	dots     bool // there must be one, as in a JWT
	keep     bool // the prefix is no part of the secret
}

// knownShapes are looked for everywhere. Prefixes have three bytes or more,
// because the filter in front of the search looks at three.
func knownShapes() []shape {
	shapes := []shape{
		{prefix: "eyJ", chars: dottedChars, min: 27, dots: true}, // JWT: base64 of {"
		{prefix: "Bearer ", chars: tokenChars, min: 16, digit: true, keep: true},
		{prefix: "bearer ", chars: tokenChars, min: 16, digit: true, keep: true},

		// OpenAI, Anthropic and others
		{prefix: "sk-", chars: wordChars, min: 20, digit: true},

		{prefix: "github_pat_", chars: wordChars, min: 22},
		{prefix: "glpat-", chars: wordChars, min: 20},
		{prefix: "AKIA", chars: upperChars, min: 16, max: 16}, // AWS
		{prefix: "ASIA", chars: upperChars, min: 16, max: 16},
		{prefix: "xapp-", chars: wordChars, min: 20},         // Slack
		{prefix: "AIza", chars: wordChars, min: 35, max: 35}, // Google
		{prefix: "ya29.", chars: dottedChars, min: 20},
		{prefix: "GOCSPX-", chars: wordChars, min: 20},
		{prefix: "hf_", chars: alnumChars, min: 30}, // Hugging Face
		{prefix: "npm_", chars: alnumChars, min: 36, max: 36},
		{prefix: "pypi-", chars: wordChars, min: 50},
		{prefix: "SG.", chars: dottedChars, min: 60}, // SendGrid
		{prefix: "gsk_", chars: alnumChars, min: 40}, // Groq
		{prefix: "xai-", chars: alnumChars, min: 40},
		{prefix: "r8_", chars: alnumChars, min: 37}, // Replicate
		{prefix: "pplx-", chars: alnumChars, min: 40},
		{prefix: "nvapi-", chars: wordChars, min: 40},
		{prefix: "dop_v1_", chars: alnumChars, min: 60},  // DigitalOcean
		{prefix: "shpat_", chars: alnumChars, min: 32},   // Shopify
		{prefix: "lin_api_", chars: alnumChars, min: 32}, // Linear
		{prefix: "whsec_", chars: tokenChars, min: 24},   // Stripe
	}
	shapes = append(shapes, documentedShapes...)
	for _, p := range []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"} {
		shapes = append(shapes, shape{prefix: p, chars: alnumChars, min: 30})
	}
	for _, p := range []string{"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-"} {
		shapes = append(shapes, shape{prefix: p, chars: wordChars, min: 10, digit: true})
	}
	for _, p := range []string{"sk_live_", "sk_test_", "rk_live_", "rk_test_"} {
		shapes = append(shapes, shape{prefix: p, chars: alnumChars, min: 16})
	}
	return shapes
}

// documentedShapes are those of vendors' documentation that the published rules lack, or that
// have changed since. Those whose prefix may begin a word have a digit.
var documentedShapes = []shape{
	{prefix: "sq0csp-", chars: wordChars, min: 22},
	{prefix: "sntrys_", chars: tokenChars, min: 40},
	{prefix: "hvs.", chars: wordChars, min: 24},
	{prefix: "hvb.", chars: wordChars, min: 24},
	{prefix: "atlasv1.", chars: wordChars, min: 40},
	{prefix: "tfp_", chars: alnumChars, min: 40},
	{prefix: "tvly-", chars: wordChars, min: 20},
	{prefix: "nfp_", chars: alnumChars, min: 30},
	{prefix: "figd_", chars: wordChars, min: 36},
	{prefix: "ATATT3", chars: tokenChars, min: 60},
	{prefix: "ATCTT3", chars: tokenChars, min: 60},
	{prefix: "ATBB", chars: alnumChars, min: 28, digit: true},
	{prefix: "BBDC-", chars: tokenChars, min: 40},
	{prefix: "1//0", chars: wordChars, min: 40},
	{prefix: "dckr_", chars: wordChars, min: 24},
	{prefix: "secret_", chars: alnumChars, min: 40, digit: true},
	{prefix: "ntn_", chars: alnumChars, min: 40},
	{prefix: "lin_oauth_", chars: alnumChars, min: 32},
	{prefix: "phc_", chars: alnumChars, min: 40},
	{prefix: "phx_", chars: alnumChars, min: 40},
	{prefix: "sbp_", chars: alnumChars, min: 40},
	{prefix: "sb_secret_", chars: wordChars, min: 20},
	{prefix: "vercel_blob_rw_", chars: wordChars, min: 24},
	{prefix: "pat-na1-", chars: wordChars, min: 36},
	{prefix: "pat-eu1-", chars: wordChars, min: 36},
	{prefix: "NRAK-", chars: upperChars, min: 27},
	{prefix: "hooks.slack.com/services/", chars: urlPathChars, min: 30, keep: true},
	{prefix: "discord.com/api/webhooks/", chars: urlPathChars, min: 60, keep: true},
	{prefix: "jina_", chars: wordChars, min: 50},
	{prefix: "voyage-", chars: wordChars, min: 40, digit: true},
	{prefix: "pa-", chars: wordChars, min: 40, digit: true},
	{prefix: "pcsk_", chars: wordChars, min: 40},
	{prefix: "fw_", chars: alnumChars, min: 22, digit: true},
	{prefix: "csk-", chars: alnumChars, min: 40},
	{prefix: "wandb_v1_", chars: wordChars, min: 40},
	{prefix: "cio_", chars: alnumChars, min: 40},
	{prefix: "apify_api_", chars: alnumChars, min: 30},
	{prefix: "CFPAT-", chars: wordChars, min: 40},
	{prefix: "key-", chars: hexChars, min: 32},
	{prefix: "rnd_", chars: alnumChars, min: 24, digit: true},
	{prefix: "tskey-", chars: wordChars, min: 24},
	{prefix: "oy2", chars: alnumChars, min: 43, max: 43},
	{prefix: "bkua_", chars: hexChars, min: 40},
	{prefix: "CCIPAT_", chars: wordChars, min: 40},
	{prefix: "SCW", chars: upperChars, min: 17, max: 17, digit: true},
	{prefix: "aio_", chars: alnumChars, min: 28, max: 28},
	{prefix: "cfut_", chars: alnumChars, min: 40},
	{prefix: "api_org_", chars: alnumChars, min: 34},
	{prefix: "rpa_", chars: alnumChars, min: 40, digit: true},
	{prefix: "sk_", chars: hexChars, min: 48},
	{prefix: "--token ", chars: tokenChars, min: 12, digit: true, keep: true},
	{prefix: "--api-key ", chars: tokenChars, min: 12, digit: true, keep: true},
}

// keyShapes are those of a profile's keys.
func keyShapes(keys []profile.Key) []shape {
	var shapes []shape
	for _, k := range keys {
		shapes = append(shapes, shape{prefix: k.Prefix, chars: alnumChars, min: k.MinLength, digit: true})
	}
	return shapes
}

// fits reports whether a run, the prefix not included, is a key of shape s.
func (s *shape) fits(run []byte) bool {
	if len(run) < s.min {
		return false
	}
	digit, dot := !s.digit, !s.dots
	for i, c := range run {
		digit = digit || c >= '0' && c <= '9'
		dot = dot || c == '.' && i >= 8 && i < len(run)-1
	}
	return digit && dot
}
