package probe

import (
	"context"
)

func runGo(ctx context.Context, c *client, o *Options, res *Result) error { return nil }
