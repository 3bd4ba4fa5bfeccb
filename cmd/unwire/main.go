// Unwire records Connect-RPC traffic, explains it without a schema, and
// reconstructs and checks the .proto files behind it.
package main

import (
	"os"

	"unwire/cmd/internal/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
