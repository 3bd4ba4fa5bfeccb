// Package keyshape has what the keys and tokens of issuers look like: a prefix, then a run of
// characters. The shapes are those of a published set of rules and of vendors' documentation.
//
// All returns them; package redact asks each Shape at the positions at which its prefix may
// begin.
package keyshape

import (
	"unwire/captures/profile"
	"unwire/captures/redact/internal/charset"
)

// All returns the shapes that are looked for everywhere, and those of a profile's keys.
func All(keys []profile.Key) []Shape {
	shapes := append(known(), published()...)
	for _, k := range keys {
		shapes = append(shapes, Shape{Prefix: k.Prefix, chars: charset.Alnum, min: k.MinLength, digit: true})
	}
	return shapes
}

// A Shape is what the keys of one issuer look like: a prefix, then a run of
// characters of a set.
type Shape struct {
	// Prefix is what the key begins with, three bytes or more.
	Prefix string

	chars    *charset.Set
	min, max int  // of the run; max 0: as long as it goes
	digit    bool // there must be one, because the prefix occurs in words
	dots     bool // there must be one, as in a JWT
	colon    bool // there must be one, between a name and a password
	keep     bool // the prefix is no part of the secret

	// after, if set, is the byte in front of the prefix. It is left, so that no lone byte of
	// its kind has to be waited for.
	after byte
}

// known are looked for everywhere. Prefixes have three bytes or more,
// because the filter in front of the search looks at three.
func known() []Shape {
	shapes := []Shape{
		{Prefix: "eyJ", chars: charset.Dotted, min: 27, dots: true},
		{Prefix: "Bearer ", chars: charset.Token, min: 16, digit: true, keep: true},
		{Prefix: "bearer ", chars: charset.Token, min: 16, digit: true, keep: true},

		// OpenAI, Anthropic and others
		{Prefix: "sk-", chars: charset.Word, min: 20, digit: true},

		{Prefix: "github_pat_", chars: charset.Word, min: 22},
		{Prefix: "glpat-", chars: charset.Word, min: 20},
		{Prefix: "AKIA", chars: charset.Upper, min: 16, max: 16}, // AWS
		{Prefix: "ASIA", chars: charset.Upper, min: 16, max: 16},
		{Prefix: "xapp-", chars: charset.Word, min: 20},         // Slack
		{Prefix: "AIza", chars: charset.Word, min: 35, max: 35}, // Google
		{Prefix: "ya29.", chars: charset.Dotted, min: 20},
		{Prefix: "GOCSPX-", chars: charset.Word, min: 20},
		{Prefix: "hf_", chars: charset.Alnum, min: 30}, // Hugging Face
		{Prefix: "npm_", chars: charset.Alnum, min: 36, max: 36},
		{Prefix: "pypi-", chars: charset.Word, min: 50},
		{Prefix: "SG.", chars: charset.Dotted, min: 60}, // SendGrid
		{Prefix: "gsk_", chars: charset.Alnum, min: 40}, // Groq
		{Prefix: "xai-", chars: charset.Alnum, min: 40},
		{Prefix: "r8_", chars: charset.Alnum, min: 37}, // Replicate
		{Prefix: "pplx-", chars: charset.Alnum, min: 40},
		{Prefix: "nvapi-", chars: charset.Word, min: 40},
		{Prefix: "dop_v1_", chars: charset.Alnum, min: 60},  // DigitalOcean
		{Prefix: "shpat_", chars: charset.Alnum, min: 32},   // Shopify
		{Prefix: "lin_api_", chars: charset.Alnum, min: 32}, // Linear
		{Prefix: "whsec_", chars: charset.Token, min: 24},   // Stripe
	}
	shapes = append(append(shapes, documentedShapes...), flagShapes()...)
	for _, p := range []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"} {
		shapes = append(shapes, Shape{Prefix: p, chars: charset.Alnum, min: 30})
	}
	for _, p := range []string{"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-"} {
		shapes = append(shapes, Shape{Prefix: p, chars: charset.Word, min: 10, digit: true})
	}
	for _, p := range []string{"sk_live_", "sk_test_", "rk_live_", "rk_test_"} {
		shapes = append(shapes, Shape{Prefix: p, chars: charset.Alnum, min: 16})
	}
	return shapes
}

// fits reports whether a run, the prefix not included, is a key of shape s.
func (s *Shape) fits(run []byte) bool {
	if len(run) < s.min {
		return false
	}
	digit, dot, colon := !s.digit, !s.dots, !s.colon
	for i, c := range run {
		digit = digit || c >= '0' && c <= '9'
		colon = colon || c == ':' && i > 0 && i < len(run)-1 && run[i+1] != '/'
		dot = dot || c == '.' && i >= 8 && i < len(run)-1
	}
	return digit && dot && colon
}
