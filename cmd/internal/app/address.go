package app

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"unwire/captures/safetext"
	"unwire/cmd/internal/query"
)

// AddressArgs parses the command-line arguments that name an exchange of a capture file: "F.uwc 7" or
// "F.uwc#7". It is a usage error if no exchange is named, unless optional is true; the address is then
// that of the whole capture.
func AddressArgs(args []string, optional bool) (query.Address, error) {
	a := query.ParseAddress(args[0])
	if len(args) > 1 {
		if a.Exchange != 0 {
			return a, Usagef("the exchange is given twice: as %s and as %s", args[0], args[1])
		}
		id, err := strconv.ParseInt(args[1], 10, 64)
		if _, swapped := strconv.ParseUint(args[0], 10, 32); err != nil && swapped == nil {
			return a, Fail(ExitUsage, fmt.Errorf("%q is not an exchange number", args[1]),
				fmt.Sprintf("name the capture before the exchange: %s %s", safetext.ShellFile(args[1]), args[0]))
		}
		if err != nil || id < 1 {
			return a, Fail(ExitUsage, fmt.Errorf("%q is not an exchange number", args[1]),
				fmt.Sprintf("'unwire ls %s' lists the exchanges", safetext.ShellFile(a.File)))
		}
		a.Exchange = id
	}
	if file, rest, ok := strings.Cut(a.File, "#"); ok && a.Exchange == 0 && !isThere(a.File) && isThere(file) {
		return a, Fail(ExitUsage, fmt.Errorf("%s: %q does not name an exchange or a frame", args[0], rest),
			fmt.Sprintf("addresses are such as %[1]s#7 (exchange 7), or %[1]s#7/up/0 (its first frame to the server)", file))
	}
	if _, err := strconv.ParseUint(a.File, 10, 32); err == nil && a.Exchange == 0 && !isThere(a.File) {
		return a, Fail(ExitUsage, fmt.Errorf("%s: no such file", a.File), "name the capture before the exchange: F.uwc "+a.File)
	}
	if a.Exchange == 0 && !optional {
		return a, Fail(ExitUsage, fmt.Errorf("%s: the exchange number is missing", a.File),
			fmt.Sprintf("give the number of an exchange: 'unwire ls %s' lists them", safetext.ShellFile(a.File)))
	}
	return a, nil
}

// isThere reports whether a file exists.
func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
