package query

import (
	"context"
	"fmt"
	"net/url"

	"unwire/decode"
)

// ServerOf returns the URL of the server of an exchange: scheme, host and port.
//
// Errors: those of decoding.
func (c *Capture) ServerOf(ctx context.Context, id int64) (*url.URL, error) {
	ex, err := decode.Decode(ctx, c.Store, id, decode.Options{})
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(ex.URL)
	if err != nil {
		return nil, fmt.Errorf("exchange %d cannot be probed: %w", id, err)
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}
