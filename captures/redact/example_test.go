package redact_test

import (
	"fmt"
	"regexp"

	"unwire/captures"
	"unwire/captures/redact"
)

// Redact the headers and the body of a request. The digits of a placeholder depend on the secret and on a random key,
// so the example replaces them. In bodies, placeholders have the length of the secret.
func Example() {
	r := redact.New(redact.Options{})
	placeholder := regexp.MustCompile(`\[redacted:[0-9a-f]+\]|redacted-[0-9a-f]+\.*`)
	show := func(s string) { fmt.Println(placeholder.ReplaceAllString(s, "***")) }

	headers := r.Headers(captures.Headers{
		{Name: "authorization", Value: "Bearer example-token-0123456789"},
		{Name: "accept", Value: "application/json"},
	})
	for _, h := range headers {
		show(h.Name + ": " + h.Value)
	}

	// The token was learned from the header, so it is found in other places too.
	show(string(r.Bytes([]byte(`{"password":"hunter2-hunter2","note":"example-token-0123456789"}`))))
	// Output:
	// authorization: Bearer ***
	// accept: application/json
	// {"password":"***","note":"***"}
}
