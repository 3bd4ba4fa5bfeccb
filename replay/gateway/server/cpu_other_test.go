//go:build !linux

package server_test

import (
	"testing"
	"time"
)

// processorTime is only measured on Linux.
func processorTime(*testing.B) time.Duration { return 0 }
