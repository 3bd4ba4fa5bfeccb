package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"

	"unwire/cmd/internal/app"
)

// Exit statuses with which shells report that a command cannot be run.
const (
	statusNotExecutable = 126
	statusNotFound      = 127
)

// findCommand returns an error if the program of the command argv does not exist or cannot be executed,
// so that no capture is created for it. With --browser, argv has only flags for the browser, and is not
// checked.
func findCommand(browser string, argv []string) error {
	if len(argv) == 0 || browser != "" {
		return nil
	}
	_, err := exec.LookPath(argv[0])
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound):
		return app.Fail(statusNotFound, fmt.Errorf("the command %s was not found in the folders of $PATH", argv[0]), "check the name, or give its path, such as ./"+argv[0])
	case errors.Is(err, fs.ErrNotExist):
		return app.Fail(statusNotFound, fmt.Errorf("the command %s does not exist", argv[0]), "check the path")
	}
	return app.Fail(statusNotExecutable, fmt.Errorf("the command %s cannot be run: %w", argv[0], err), "make the file executable, or run it with its interpreter")
}
