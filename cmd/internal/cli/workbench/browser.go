package workbench

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// openBrowser opens a URL in the user's browser, and does not wait for the browser to end.
//
// Errors: no program that opens URLs was found, or there is no graphical display.
func openBrowser(ctx context.Context, url string) error {
	argv, err := browserCommand(runtime.GOOS, os.Getenv, url)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), argv[0], argv[1:]...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // its end is of no interest
	return nil
}

// browserCommand returns the command line that opens a URL on an operating system (a value of
// runtime.GOOS): the command in BROWSER, or the system's. env reads an environment variable.
func browserCommand(system string, env func(string) string, url string) ([]string, error) {
	if b := strings.Fields(env("BROWSER")); len(b) > 0 {
		return append(b, url), nil
	}
	switch system {
	case "darwin":
		return []string{"open", url}, nil
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler", url}, nil
	}
	if env("DISPLAY") == "" && env("WAYLAND_DISPLAY") == "" {
		return nil, errors.New("no screen is available to open a browser on")
	}
	return []string{"xdg-open", url}, nil
}
