package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"

	"unwire/cmd/internal/app"
)

// Exit statuses of a command that cannot be run, as shells have them.
const (
	statusNotExecutable = 126
	statusNotFound      = 127
)

// findCommand checks that the program of a command exists, so that neither a recording nor a file is
// begun for one that does not. With --browser, argv has only the browser's flags.
func findCommand(browser string, argv []string) error {
	if len(argv) == 0 || browser != "" {
		return nil
	}
	_, err := exec.LookPath(argv[0])
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound):
		return app.Fail(statusNotFound, fmt.Errorf("the command %s was not found in $PATH", argv[0]), "check the name, or give its path, such as ./"+argv[0])
	case errors.Is(err, fs.ErrNotExist):
		return app.Fail(statusNotFound, fmt.Errorf("the command %s does not exist", argv[0]), "check the path")
	}
	return app.Fail(statusNotExecutable, fmt.Errorf("the command %s cannot be run: %w", argv[0], err), "make the file executable, or run it with its interpreter")
}
