// Package keyshape has the shapes of the keys and tokens of many issuers: a prefix, and a run of characters.
// They come from a published set of rules and from the documentation of vendors.
//
// All returns the shapes; package redact calls Shape.At at each position at which the prefix may begin.
package keyshape

import (
	"unwire/captures/profile"
	"unwire/captures/redact/internal/charset"
)

// All returns all shapes to be searched for: the built-in ones, and those for the keys of a profile.
func All(keys []profile.KeyShape) []Shape {
	shapes := append(known(), published()...)
	for _, k := range keys {
		shapes = append(shapes, Shape{Prefix: k.Prefix, chars: charset.Alnum, min: k.MinLength, digit: true})
	}
	return shapes
}

// A Shape describes the format of one kind of API key: a prefix, and then a run of characters from a set.
type Shape struct {
	// Prefix is the beginning of the key, at least two bytes.
	Prefix string

	// chars is the set of characters after the prefix.
	chars *charset.Set
	// min is the smallest number of characters after the prefix.
	min int
	// max is the largest number of characters after the prefix; 0 means unlimited.
	max int
	// digit means that the key must contain a digit, because its prefix also occurs in words.
	digit bool
	// dots means that the key must contain a dot, as a JSON Web Token does.
	dots bool
	// colon means that the run must contain a colon, between a user name and a password.
	colon bool
	// mixed means that the run must contain a character that is not a letter, as passwords do and words do not.
	mixed bool
	// random means that the run must look like a random key.
	random bool
	// keep means that the prefix is not secret and is not replaced.
	keep bool

	// after, if not 0, is the byte that must precede the prefix. It is not part of Prefix, so that the scanner
	// need not wait for more bytes after every such byte.
	after byte
}

// Follows reports whether the byte c may follow the prefix of the shape.
func (s *Shape) Follows(c byte) bool { return s.chars.Has(c) }

// Starts returns the texts of at least three bytes with which a key can begin: the prefix or, if that has only two
// bytes, the prefix and each byte that may follow it.
func (s *Shape) Starts() (starts []string) {
	if len(s.Prefix) > 2 {
		return []string{s.Prefix}
	}
	for c := range 0x80 {
		if s.chars.Has(byte(c)) {
			starts = append(starts, s.Prefix+string(rune(c)))
		}
	}
	return starts
}

// Least returns the smallest number of bytes of a match: of a whole key, or of the beginning of one that counts
// as a match because the scanner cannot wait for more bytes.
func (s *Shape) Least() int { return len(s.Prefix) + min(s.min, leastOpen) }

// leastOpen is how many bytes must follow the prefix of an incomplete key for it to count as a match.
const leastOpen = 8

// known returns the built-in shapes that were chosen by hand.
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

// fits reports whether run, the bytes after the prefix, belongs to a key of shape s.
func (s *Shape) fits(run []byte) bool {
	if len(run) < s.min {
		return false
	}
	if s.random && !charset.LooksKey(run) {
		return false
	}
	digit, dot, colon, mixed := !s.digit, !s.dots, !s.colon, !s.mixed
	for i, c := range run {
		mixed = mixed || c|0x20 < 'a' || c|0x20 > 'z'
		digit = digit || c >= '0' && c <= '9'
		colon = colon || c == ':' && i > 0 && i < len(run)-1 && run[i+1] != '/'
		dot = dot || c == '.' && i >= 8 && i < len(run)-1
	}
	return digit && dot && colon && mixed
}
