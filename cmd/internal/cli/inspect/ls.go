package inspect

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/decode"
	"unwire/decode/conversation"
)

// A listing is a line of `unwire ls --json`.
type listing struct {
	V          int             `json:"v"`
	ID         int64           `json:"id"`
	Method     string          `json:"method"`
	URL        string          `json:"url"`
	Service    string          `json:"service"`
	RPC        string          `json:"rpc"`
	Protocol   decode.Protocol `json:"protocol"`
	Codec      string          `json:"codec"`
	HTTP       string          `json:"http"`
	Status     int             `json:"status"`
	Code       string          `json:"code"`
	FramesUp   int             `json:"frames_up"`
	FramesDown int             `json:"frames_down"`
	BytesUp    int64           `json:"bytes_up"`
	BytesDown  int64           `json:"bytes_down"`
	Started    string          `json:"started"`
	DurationMS float64         `json:"duration_ms"`
	Complete   bool            `json:"complete"`
	Outcome    string          `json:"outcome"`
	Error      string          `json:"error,omitempty"`
	// the server's certificate was not checked
	Unverified bool `json:"unverified,omitempty"`
	// the head of the conversation that it is a piece of
	Joined int64 `json:"joined,omitempty"`
	// of a head: all pieces
	Parts []int64 `json:"parts,omitempty"`
}

func lsCommand(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "ls F.uwc",
		Short:   "List the exchanges of a capture",
		Example: "  unwire ls F.uwc\n  unwire ls --json F.uwc | jq -r 'select(.code!=\"ok\") | .url'",
		Args:    app.ExactArgs("F.uwc"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return ls(cmd.Context(), a, args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "a JSON object a line")
	return cmd
}

func ls(ctx context.Context, a *app.App, file string, asJSON bool) error {
	store, err := app.OpenCapture(file)
	if err != nil {
		return err
	}
	defer store.Close()
	list, err := conversation.ListExchanges(ctx, store)
	if outErr := printList(a, list, asJSON); outErr != nil {
		return outErr
	}
	if err == nil {
		// What can be listed without is no reason to fail.
		_ = list.Save(ctx, store)
	}
	return err
}

func printList(a *app.App, list *conversation.List, asJSON bool) error {
	lines := make([]listing, len(list.Exchanges))
	for i := range lines {
		lines[i] = NewListing(&list.Exchanges[i])
	}
	if asJSON {
		w := bufio.NewWriterSize(a.Out, 64<<10)
		e := app.NewLineEncoder(w)
		for i := range lines {
			if err := e.Encode(&lines[i]); err != nil {
				return err
			}
		}
		return w.Flush()
	}
	if err := lsTable(a, lines); err != nil {
		return err
	}
	for i := range lines {
		if isRefusedCertificate(lines[i].Error) {
			a.Say("unwire: hint: exchange %d: %s", lines[i].ID, pinningHint)
			break
		}
	}
	return nil
}

func NewListing(ex *conversation.Listed) listing {
	return listing{
		V: 1, ID: ex.ID, Method: ex.Method, URL: ex.URL, Service: ex.Service, RPC: ex.RPC,
		Protocol: ex.Protocol, Codec: ex.Codec, HTTP: ex.HTTP, Status: ex.Status, Code: ex.Code,
		FramesUp: ex.FramesUp, FramesDown: ex.FramesDown, BytesUp: ex.BytesUp, BytesDown: ex.BytesDown,
		Started: ex.Started.Format(time.RFC3339Nano), DurationMS: app.Millis(ex.Duration),
		Complete: ex.Outcome == captures.Complete, Outcome: string(ex.Outcome), Error: ex.Exchange.Error,
		Unverified: ex.TLS.Unverified, Joined: ex.Joined, Parts: ex.Parts,
	}
}

// notVerified is said of a server's certificate (capture --upstream-insecure).
const notVerified = "not verified"

func lsTable(a *app.App, lines []listing) error {
	head := []string{"ID", "CALL", "PROTOCOL", "CODEC", "HTTP", "STATUS", "CODE", "FRAMES↑", "FRAMES↓", "BYTES↑", "BYTES↓", "TIME"}
	joined := slices.ContainsFunc(lines, func(l listing) bool { return l.Joined != 0 })
	if joined {
		head = append(head, "JOINED")
	}
	unverified := slices.ContainsFunc(lines, func(l listing) bool { return l.Unverified })
	if unverified {
		head = append(head, "CERTIFICATE")
	}
	rows := make([][]string, len(lines))
	for i, l := range lines {
		rows[i] = []string{
			strconv.FormatInt(l.ID, 10), l.What(), string(l.Protocol), l.Codec, "HTTP/" + l.HTTP,
			strconv.Itoa(l.Status), l.Ending(), strconv.Itoa(l.FramesUp), strconv.Itoa(l.FramesDown),
			app.ByteSize(l.BytesUp), app.ByteSize(l.BytesDown), fmt.Sprintf("%.1f ms", l.DurationMS),
		}
		if joined {
			rows[i] = append(rows[i], l.joined())
		}
		if unverified {
			rows[i] = append(rows[i], map[bool]string{true: notVerified}[l.Unverified])
		}
	}
	return a.Out.Table(head, rows)
}

// joined says of a head how many calls are joined to it, and of those to which.
func (l *listing) joined() string {
	switch l.Joined {
	case 0:
		return ""
	case l.ID:
		return app.Counted(len(l.Parts), "call")
	}
	return fmt.Sprintf("to #%d", l.Joined)
}

// What names the call: the RPC, or method and URL.
func (l *listing) What() string {
	if l.Service != "" {
		return l.Service + "/" + l.RPC
	}
	return l.Method + " " + l.URL
}

// Ending is the code, and how it ended where it did not end cleanly.
func (l *listing) Ending() string {
	switch {
	case l.Complete:
		return l.Code
	case l.Outcome == "":
		return "(in flight)"
	case isRefusedCertificate(l.Error):
		return "(certificate refused)"
	}
	return "(" + l.Outcome + ")"
}
