// Unwire records Connect-RPC traffic, explains it without a schema, and
// reconstructs and checks the .proto files behind it.
package main

import (
	"io"
	"log"
	"os"

	"unwire/cmd/internal/cli"
)

// main runs unwire with the arguments of the process and exits with the status of the command.
func main() {
	// net/http logs there what unwire reports as an error of the request, such as an answer in HTTP/2
	// on a connection that is idle.
	log.SetOutput(io.Discard)
	os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
