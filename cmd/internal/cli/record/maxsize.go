package record

import (
	"errors"
	"io/fs"
	"os"

	"unwire/captures/series"
	"unwire/cmd/internal/app"
)

// parseMaxSize parses the value of --max-size, in bytes. file is the capture to be written, which must
// not exist, because it could be deleted as the oldest file of the series.
func parseMaxSize(value, file string) (int64, error) {
	size, err := app.ParseSize(value)
	switch {
	case err != nil:
		return 0, app.Usagef("--max-size: %v", err)
	case size < series.MinTotal:
		return 0, app.Usagef("--max-size %s is too small: the minimum is %dMiB", value, series.MinTotal>>20)
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return 0, app.Usagef("--max-size deletes the oldest files, so it could delete %s, which exists already: choose a new file with -o", file)
	}
	return size, nil
}
