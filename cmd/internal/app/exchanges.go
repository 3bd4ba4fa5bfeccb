package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"unwire/captures"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/conversation"
)

// RemarkEmpty prints a warning if a capture contains no exchanges. Otherwise a user could take "nothing
// found" to mean that nothing is wrong.
func (a *App) RemarkEmpty(ctx context.Context, c *query.Capture) {
	for range c.Exchanges(ctx) {
		return
	}
	a.Say("unwire: warning: %s contains no exchanges", term.Clean(c.Path))
}

// EachExchange decodes each exchange of a capture, or the one exchange that an address such as F.uwc#7
// names, and calls do with it. joined reports that the exchange is one conversation assembled from
// several calls; see conversation.EachCall.
func (a *App) EachExchange(ctx context.Context, name string, do func(ex *decode.Exchange, joined bool) error) error {
	addr := query.ParseAddress(name)
	store, err := a.OpenCapture(addr.File)
	if err != nil {
		return err
	}
	defer store.Close()
	return conversation.EachCall(ctx, store, addr.Exchange, addr.Part, decode.Options{}, do)
}

// CheckSplitting returns a usage error if the user chose a framing (--as) for an HTTP exchange. The
// framing of HTTP is known from its protocol; only for raw connections must the user choose how to divide
// the bytes into messages.
func CheckSplitting(ex *decode.Exchange, by decode.Splitting) error {
	if by == "" || ex.Transport != captures.HTTP {
		return nil
	}
	return Usagef("--as %s is only for connections without HTTP, but exchange %d is %s: for this exchange, --as must be PATH:TYPE, such as 1.2:string", by, ex.ID, ex.Protocol)
}

// SplittingNames lists decode.Splittings with their meanings, for the help of flags.
const SplittingNames = "delimited (a varint with the length precedes each message), delimited32be or delimited32le (a length of 4 bytes, big-endian or little-endian, precedes each message), frames (the 5-byte header of gRPC precedes each message)"

// SplittingFlag adds the flag --as to a command. It selects the framing of connections without HTTP, and
// is stored in to.
func SplittingFlag(flags *pflag.FlagSet, to *string) {
	flags.StringVar(to, "as", "", "for connections without HTTP: how to divide the bytes into messages: "+SplittingNames)
}

// ParseSplitting parses a value of --as that selects how a byte stream divides into messages, such as
// "delimited"; "" is valid and selects nothing.
func ParseSplitting(value string) (decode.Splitting, error) {
	return decode.Splitting(value), OneOf("--as", value, append(decode.Splittings(), "")...)
}

// NeedCall returns an error if the exchange at an address is not an RPC, for a command (named command in
// the error) that supports only RPCs. It returns nil if the address names a whole capture.
func NeedCall(ctx context.Context, c *query.Capture, at query.Address, command string) error {
	if at.Exchange == 0 {
		return nil
	}
	ex, err := c.Exchange(ctx, at.Exchange)
	if err != nil || ex.Transport == captures.HTTP {
		// The command reports what cannot be read.
		return nil
	}
	call := decode.Classify(ex)
	if call.Service != "" {
		return nil
	}
	return Fail(ExitInput, fmt.Errorf("%s: exchange %d has the protocol %s, and is not an RPC call", command, ex.ID, call.Protocol),
		"'unwire ls F.uwc' lists the protocols; 'unwire show' and 'unwire schema infer' support this exchange")
}

// NeedCalls returns an error if the exchange at an address is not an RPC, for a command that supports only RPCs. If
// the address names a whole capture, it prints how many of its exchanges the command skips because they are not RPCs.
func (a *App) NeedCalls(ctx context.Context, c *query.Capture, at query.Address, command string) error {
	if at.Exchange != 0 {
		return NeedCall(ctx, c, at, command)
	}

	// Protocols without HTTP, such as raw TCP, may carry calls that were classified by their
	// content.
	sockets, connections := 0, 0
	for ex, err := range c.Exchanges(ctx) {
		switch {
		case err != nil:
			return nil // the command reports what cannot be read
		case ex.Transport == captures.HTTP || decode.Classify(ex).Service != "":
		case ex.Transport == captures.WebSocket:
			sockets++
		default:
			connections++
		}
	}
	var parts []string
	if sockets > 0 {
		parts = append(parts, Counted(sockets, "WebSocket"))
	}
	if connections > 0 {
		parts = append(parts, Counted(connections, "connection")+" without HTTP")
	}
	if len(parts) > 0 {
		a.Say("unwire: %s: %s ignores %s, which are not RPC calls", term.Clean(at.File), command, strings.Join(parts, " and "))
	}
	return nil
}

// Remark prints to stderr which parts of an exchange could not be decoded and are therefore ignored.
func (a *App) Remark(ex *decode.Exchange) {
	if ex.Err != nil {
		a.Say("unwire: %v", ex.Err)
	}
}
