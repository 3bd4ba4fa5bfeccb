package es

import (
	"context"
	"regexp"
	"strings"

	"unwire/replay/probe"
)

// wholeMessage matches the error of protobuf-es about a JSON text as a whole, which names the message
// type.
var wholeMessage = regexp.MustCompile(`cannot decode (message )?([\w.]+) from JSON`)

// requestType determines the full name of the request's type: it sends JSON that ends after its first
// brace, which no parser accepts. protobuf-es names the type in its error, and each version words the
// error differently.
func requestType(ctx context.Context, c *probe.Client, res *probe.Result) error {
	a, err := c.AskJSON(ctx, "the request's type: JSON that ends early", []byte("{"))
	if err != nil {
		return err
	}
	m := wholeMessage.FindStringSubmatch(a.Text)
	if m == nil {
		return nil
	}
	res.RequestType = strings.TrimPrefix(m[2], ".")
	res.Runtime = probe.ES1
	if m[1] != "" {
		res.Runtime = probe.ES2
	}
	return nil
}
