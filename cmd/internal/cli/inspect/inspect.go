// Package inspect has the commands that read captures, frames and messages: ls, show,
// decode, encode, grep, extract and diff.
//
// A file has the name of its command; extract has two more, that fit weights and
// print them. In common are the readings that --as chooses and a capture remembers,
// explanations of a field, and watching: show, decode and extract can follow a
// capture while it is recorded. The work is done by package query and the packages
// below decode/; package render prints.
package inspect

import (
	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
)

// Commands returns the commands that read captures, frames and messages.
func Commands(a *app.App) []*cobra.Command {
	return []*cobra.Command{
		lsCommand(a),
		showCommand(a),
		decodeCommand(a),
		encodeCommand(a),
		grepCommand(a),
		extractCommand(a),
		diffCommand(a),
	}
}
