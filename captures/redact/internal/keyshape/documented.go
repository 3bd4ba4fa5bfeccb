package keyshape

import "unwire/captures/redact/internal/charset"

// documentedShapes are formats of API keys from vendors' documentation that the published rules lack, or that
// have changed since. If a prefix may begin a word, the key must contain a digit.
var documentedShapes = []Shape{
	// Airtable
	{Prefix: "pat", chars: charset.Dotted, min: 79, dots: true, digit: true},
	// Square
	{Prefix: "sq0csp-", chars: charset.Word, min: 22},
	{Prefix: "sntrys_", chars: charset.Token, min: 40},
	// HashiCorp
	{Prefix: "SWMTKN-1-", chars: charset.Word, min: 60},
	{Prefix: "hvs.", chars: charset.Word, min: 24},
	{Prefix: "hvb.", chars: charset.Word, min: 24},
	{Prefix: "atlasv1.", chars: charset.Word, min: 40},
	// Typeform
	{Prefix: "tfp_", chars: charset.Alnum, min: 40},
	// Tavily
	{Prefix: "tvly-", chars: charset.Word, min: 20},
	// Netlify
	{Prefix: "nfp_", chars: charset.Alnum, min: 30},
	// Figma
	{Prefix: "figd_", chars: charset.Word, min: 36},
	// Atlassian
	{Prefix: "ATATT3", chars: charset.Token, min: 60},
	{Prefix: "ATCTT3", chars: charset.Token, min: 60},
	{Prefix: "ATBB", chars: charset.Alnum, min: 28, digit: true},
	{Prefix: "BBDC-", chars: charset.Token, min: 40},
	// Google
	{Prefix: "//0", chars: charset.Word, min: 40, after: '1'},
	{Prefix: "dckr_", chars: charset.Word, min: 24},
	{Prefix: "secret_", chars: charset.Alnum, min: 40, digit: true},
	{Prefix: "ntn_", chars: charset.Alnum, min: 40},
	{Prefix: "lin_oauth_", chars: charset.Alnum, min: 32},
	// PostHog
	{Prefix: "phc_", chars: charset.Alnum, min: 40},
	{Prefix: "phx_", chars: charset.Alnum, min: 40},
	// Supabase
	{Prefix: "sbp_", chars: charset.Alnum, min: 40},
	{Prefix: "sb_secret_", chars: charset.Word, min: 20},
	{Prefix: "vercel_blob_rw_", chars: charset.Word, min: 24},
	// HubSpot
	{Prefix: "pat-na1-", chars: charset.Word, min: 36},
	{Prefix: "pat-eu1-", chars: charset.Word, min: 36},
	// New Relic
	{Prefix: "NRAK-", chars: charset.Upper, min: 27},
	{Prefix: "hooks.slack.com/services/", chars: charset.URLPath, min: 30, keep: true},
	{Prefix: "discord.com/api/webhooks/", chars: charset.URLPath, min: 60, keep: true},
	{Prefix: "jina_", chars: charset.Word, min: 50},
	{Prefix: "voyage-", chars: charset.Word, min: 40, digit: true},
	// Voyage
	{Prefix: "pa-", chars: charset.Word, min: 40, digit: true},
	// Pinecone
	{Prefix: "pcsk_", chars: charset.Word, min: 40},
	{Prefix: "fw_", chars: charset.Alnum, min: 22, digit: true},
	// Cerebras
	{Prefix: "csk-", chars: charset.Alnum, min: 40},
	{Prefix: "wandb_v1_", chars: charset.Word, min: 40},
	// crates.io
	{Prefix: "cio_", chars: charset.Alnum, min: 40},
	{Prefix: "apify_api_", chars: charset.Alnum, min: 30},
	{Prefix: "CFPAT-", chars: charset.Word, min: 40},
	{Prefix: "key-", chars: charset.Hex, min: 32},
	{Prefix: "rnd_", chars: charset.Alnum, min: 24, digit: true},
	{Prefix: "tskey-", chars: charset.Word, min: 24},
	{Prefix: "oy2", chars: charset.Alnum, min: 43, max: 43},
	{Prefix: "bkua_", chars: charset.Hex, min: 40},
	{Prefix: "CCIPAT_", chars: charset.Word, min: 40},
	{Prefix: "SCW", chars: charset.Upper, min: 17, max: 17, digit: true},
	{Prefix: "aio_", chars: charset.Alnum, min: 28, max: 28},
	{Prefix: "cfut_", chars: charset.Alnum, min: 40},
	{Prefix: "api_org_", chars: charset.Alnum, min: 34},
	// RunPod
	{Prefix: "rpa_", chars: charset.Alnum, min: 40, digit: true},
	{Prefix: "sk_", chars: charset.Hex, min: 48},
	// Solidgate, and others whose keys have the product before "sk"
	{Prefix: "_sk_", chars: charset.Alnum, min: 24, digit: true},
	{Prefix: "pckey_", chars: charset.Word, min: 30, digit: true},
	// Alfresco
	{Prefix: "TICKET_", chars: charset.Hex, min: 40},
	// JFrog
	{Prefix: "AKCp", chars: charset.Alnum, min: 60, digit: true},
	{Prefix: "AGE-SECRET-KEY-", chars: charset.Upper, min: 50},
	// OAuth, RFC 9126
	{Prefix: "urn:ietf:params:oauth:request_uri:", chars: charset.Word, min: 16, keep: true},
	// Microsoft Entra: three characters and a digit precede
	{Prefix: "Q~", chars: charset.Token, min: 31, after: '7'},
	{Prefix: "Q~", chars: charset.Token, min: 31, after: '8'},
	// Hashes of passwords, as in /etc/shadow and .htpasswd
	{Prefix: "$apr1$", chars: charset.Crypt, min: 24},
	{Prefix: "$2a$", chars: charset.Crypt, min: 50},
	{Prefix: "$2b$", chars: charset.Crypt, min: 50},
	{Prefix: "$2y$", chars: charset.Crypt, min: 50},
	{Prefix: "$1$", chars: charset.Crypt, min: 24, digit: true},
	{Prefix: "$5$", chars: charset.Crypt, min: 44, digit: true},
	{Prefix: "$6$", chars: charset.Crypt, min: 80, digit: true},
	{Prefix: "$y$", chars: charset.Crypt, min: 50, digit: true},
	{Prefix: "$argon2", chars: charset.Crypt, min: 40},
	{Prefix: "pbkdf2_sha256$", chars: charset.Crypt, min: 40},
}

// flagShapes returns shapes for secrets in command lines, such as "--token VALUE", and for the token in a
// Telegram bot's URL.
func flagShapes() []Shape {
	var shapes []Shape
	for _, name := range []string{"--token ", "--api-key ", "--oauth2-bearer ", "--password ", "--secret ", "--auth-token ", "--access-token ", "--auth-key "} {
		shapes = append(shapes,
			Shape{Prefix: name, chars: charset.Token, min: 6, mixed: true, keep: true},
			Shape{Prefix: name + `"`, chars: charset.Token, min: 6, mixed: true, keep: true})
	}
	for _, name := range []string{"password is ", "password is: ", "passphrase is ", "passphrase is: "} {
		shapes = append(shapes, Shape{Prefix: name, chars: charset.Bare, min: 6, mixed: true, keep: true})
	}
	for _, name := range []string{"secret ", "secret is ", "token is ", "key is "} {
		shapes = append(shapes, Shape{Prefix: name, chars: charset.Token, min: 30, random: true, keep: true})
	}
	for _, name := range []string{"curl -u ", "curl --user ", "--user "} {
		shapes = append(shapes,
			Shape{Prefix: name, chars: charset.Login, min: 6, colon: true, keep: true},
			Shape{Prefix: name + `"`, chars: charset.Login, min: 6, colon: true, keep: true},
			Shape{Prefix: name + `'`, chars: charset.Login, min: 6, colon: true, keep: true})
	}
	for _, name := range []string{"AUTH PLAIN ", "AUTHENTICATE PLAIN "} {
		shapes = append(shapes, Shape{Prefix: name, chars: charset.Token, min: 12, random: true, keep: true})
	}
	return append(shapes, Shape{Prefix: "/bot", chars: charset.Login, min: 40, colon: true, digit: true, keep: true})
}
