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

// RemarkEmpty reports that a capture holds no exchanges: otherwise "nothing found"
// would read as "nothing wrong".
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

// CheckSplitting refuses to split an exchange of HTTP: its protocol says what its
// messages are.
func CheckSplitting(ex *decode.Exchange, by decode.Splitting) error {
	if by == "" || ex.Transport != captures.HTTP {
		return nil
	}
	return Usagef("--as %s is only for connections without HTTP, but exchange %d is %s: for this exchange, --as must be PATH:TYPE, such as 1.2:string", by, ex.ID, ex.Protocol)
}

// SplittingFlag adds --as to a command, for exchanges without HTTP.
func SplittingFlag(flags *pflag.FlagSet, to *string) {
	flags.StringVar(to, "as", "", "framing of connections without HTTP: "+strings.Join(decode.Splittings(), ", "))
}

// ParseSplitting parses a value of --as that names how a byte stream divides into messages.
func ParseSplitting(value string) (decode.Splitting, error) {
	return decode.Splitting(value), OneOf("--as", value, append(decode.Splittings(), "")...)
}

// NeedCall refuses an address of an exchange that is no call of an RPC, since it has no
// HTTP in it, for a command that is about calls only.
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

// NeedCalls is NeedCall. For a whole capture, it says how many of its exchanges the command
// passes over because they are no calls.
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
		a.Say("unwire: %s: %s skips %s, which are not RPC calls", term.Clean(at.File), command, strings.Join(parts, " and "))
	}
	return nil
}

// Remark prints to stderr which parts of an exchange could not be decoded and are therefore ignored.
func (a *App) Remark(ex *decode.Exchange) {
	if ex.Err != nil {
		a.Say("unwire: %s", term.CleanText(ex.Err.Error()))
	}
}
