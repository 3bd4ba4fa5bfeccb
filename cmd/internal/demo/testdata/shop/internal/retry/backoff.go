// Package retry decides when to try again.
package retry

import "time"

// Backoff returns how long to wait before the given attempt, counted from 1.
func Backoff(attempt int, base, limit time.Duration) time.Duration {
	d := base
	for range attempt - 1 {
		if d > limit/2 {
			return limit
		}
		d *= 2
	}
	return min(d, limit)
}
