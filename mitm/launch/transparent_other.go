//go:build !linux

package launch

import (
	"context"
	"runtime"
)

// runTransparent returns an UnsupportedError, because network namespaces exist only on Linux.
func runTransparent(context.Context, Options, Namespace) (int, error) {
	return statusNotExecutable, &UnsupportedError{Missing: "needs Linux, and this is " + runtime.GOOS}
}

// runPassive returns an UnsupportedError, because network namespaces exist only on Linux.
func runPassive(context.Context, Options, Passive) (int, Packets, error) {
	return statusNotExecutable, Packets{}, &UnsupportedError{Missing: "needs Linux, and this is " + runtime.GOOS}
}

// namespaceInit returns a failure, because network namespaces exist only on Linux.
func namespaceInit([]string, func() (func(), error)) int { return statusNotExecutable }
