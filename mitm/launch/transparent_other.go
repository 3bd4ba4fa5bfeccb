//go:build !linux

package launch

import (
	"context"
	"runtime"
)

func runTransparent(context.Context, Options, Namespace) (int, error) {
	return statusNotExecutable, &UnsupportedError{Missing: "needs Linux, and this is " + runtime.GOOS}
}

func runPassive(context.Context, Options, Passive) (int, Packets, error) {
	return statusNotExecutable, Packets{}, &UnsupportedError{Missing: "needs Linux, and this is " + runtime.GOOS}
}

func namespaceInit([]string, func() (func(), error)) int { return statusNotExecutable }
