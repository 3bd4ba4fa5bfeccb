package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render/commandline"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/replay/credential"
	"unwire/schema"
	"unwire/schema/protoform"
)

// showCopy executes 'unwire show --copy': it prints the request of an exchange as a command line of curl,
// grpcurl or buf, or as a Go program.
func showCopy(ctx context.Context, a *app.App, addr query.Address, f showFlags) error {
	if err := app.OneOf("--copy", f.copy, commandline.Tools()...); err != nil {
		return err
	}
	c, err := a.OpenCapture(addr.File)
	if err != nil {
		return err
	}
	defer c.Close()
	ex, err := decode.Decode(ctx, c, addr.Exchange, decode.Options{NoTrees: true})
	if err != nil {
		return err
	}
	if ex.Transport != captures.HTTP {
		return app.Fail(app.ExitUsage, fmt.Errorf("exchange %d is not an HTTP request, so it cannot be printed as a command line", ex.ID), "'unwire replay' sends its messages again; the handshake of a WebSocket is an HTTP request with a number of its own")
	}
	r, err := copiedRequest(ctx, c, ex)
	if err != nil {
		return err
	}

	// curl and Go send the captured bytes; the other tools need the messages as JSON.
	write := map[string]func(*commandline.Request) (*commandline.Line, error){
		"curl": commandline.Curl, "go": commandline.Go, "grpcurl": commandline.GRPCurl, "buf": commandline.Buf,
	}[f.copy]
	if f.copy == "grpcurl" || f.copy == "buf" {
		defs, err := a.LoadDefinitions(ctx, f.proto, addr.File)
		if err != nil {
			return err
		}
		if err := addMessages(r, ex, defs); err != nil {
			return err
		}
	}
	line, err := write(r)
	if err != nil {
		return app.Fail(app.ExitInput, fmt.Errorf("exchange %d: %w", ex.ID, err), "")
	}
	for _, left := range line.Left {
		a.Say("unwire: %s", term.Clean(left))
	}

	if err := sayWhatIsMissing(ctx, a, c, ex, f.copy); err != nil {
		return err
	}

	// Secrets are variables of the environment, which the user has to set.
	if len(line.Variables) > 0 {
		a.Say("unwire: secrets are not part of the command: before you run it, set %s", strings.Join(line.Variables, ", "))
	}
	_, err = fmt.Fprintln(a.Out, line.Text)
	return err
}

// sayWhatIsMissing prints what the command line lacks, because it depends on the user's files: the CA of a server whose
// certificate this machine does not trust, and definitions.
func sayWhatIsMissing(ctx context.Context, a *app.App, c *query.Capture, ex *decode.Exchange, tool string) error {
	der, err := c.Authority(ctx, ex.TLS.CA.SHA256)
	if err != nil {
		return err
	}
	if len(der) > 0 {
		how := map[string]string{"curl": "add --cacert PEM", "grpcurl": "add -cacert PEM", "buf": "add --cacert PEM", "go": "set SSL_CERT_FILE"}[tool]
		a.Say("unwire: the server's certificate is from a CA that this machine does not trust (%s): %s", term.Clean(ex.TLS.CA.Subject), how)
	}
	switch tool {
	case "grpcurl":
		a.Say("unwire: grpcurl asks the server for its definitions (server reflection). If the server offers no reflection, add -import-path DIR -proto FILE to the grpcurl command")
	case "buf":
		a.Say("unwire: buf asks the server for its definitions (server reflection). If the server offers no reflection, add --schema DIR to the buf command")
	}
	return nil
}

// copiedRequest returns the recorded request of an exchange, in the form that package commandline needs.
// Secrets in headers are replaced by environment variables. It is an error if the URL or the body
// contains a secret, because it would appear on the command line.
func copiedRequest(ctx context.Context, c *query.Capture, ex *decode.Exchange) (*commandline.Request, error) {
	r := &commandline.Request{
		Method: ex.Method, URL: ex.URL, HTTP: ex.HTTP, Headers: ex.RequestHeaders, Service: ex.Service, RPC: ex.RPC,
		WebSocket: ex.ChangedProtocol() == string(captures.WebSocket),
		Protocol: map[decode.Protocol]string{
			decode.ConnectUnary: "connect", decode.ConnectGet: "connect", decode.ConnectStream: "connect", decode.GRPC: "grpc", decode.GRPCWeb: "grpc-web",
		}[ex.Protocol],
	}
	for chunk, err := range c.Chunks(ctx, ex.ID, 0) {
		if err != nil {
			return nil, err
		}
		if chunk.Dir == captures.Up {
			r.Body = append(r.Body, chunk.Data...)
		}
	}

	// A header is replaced by a variable if it was redacted, or if it looks like a secret.
	secrets := redact.New(redact.Options{})
	r.Secret = func(h captures.Header) (prefix, variable string, ok bool) {
		switch name := strings.ToLower(h.Name); {
		case credential.InHeader.MatchString(h.Value):
			return beforeSecret(h.Value, credential.InHeader.FindStringIndex(h.Value)[0]), credential.Variable(name), true
		case len(secrets.FindHeaders(captures.Headers{h})) > 0:
			scheme, _, cut := strings.Cut(h.Value, " ")
			if name == "authorization" && cut {
				return scheme + " ", credential.Variable(name), true
			}
			return "", credential.Variable(name), true
		}
		return "", "", false
	}

	// A secret in the URL or the body cannot be replaced in a command line.
	body := r.Body
	for i := range ex.Frames {
		if ex.Frames[i].Dir == captures.Up {
			body = append(bytes.Clone(body), ex.Frames[i].Data...)
		}
	}
	switch {
	case credential.IsRedacted(ex.URL), len(secrets.FindURL(ex.URL)) > 0:
		return nil, app.Fail(app.ExitInput, errors.New("the URL contains a secret, which a command line would show"), "'unwire replay' can send the request with the secret from the environment")
	case credential.InBytes.Match(body), len(secrets.Find(body, false, ex.URL)) > 0:
		return nil, app.Fail(app.ExitInput, errors.New("the body contains a secret, which a command line would show"), "'unwire replay' can send the request with the secret from the environment")
	}
	return r, nil
}

// beforeSecret returns the part of a header's value that precedes its secret, at offset at, if that is a
// scheme such as "Bearer "; otherwise "".
func beforeSecret(value string, at int) string {
	prefix := value[:at]
	if strings.Count(prefix, " ") == 1 && strings.HasSuffix(prefix, " ") {
		return prefix
	}
	return ""
}

// addMessages adds the client's messages of an exchange, as JSON, to a request that is printed as a
// command line.
func addMessages(r *commandline.Request, ex *decode.Exchange, defs *schema.Schema) error {
	for i := range ex.Frames {
		f := &ex.Frames[i]

		// The end-of-stream message is written by the tool itself.
		if f.Dir != captures.Up || f.End != nil {
			continue
		}
		if ex.Codec == "json" {
			var b bytes.Buffer
			if err := json.Compact(&b, f.Data); err != nil {
				return fmt.Errorf("frame %d is not valid JSON: %w", f.Seq, err)
			}
			r.Messages = append(r.Messages, b.Bytes())
			continue
		}

		// JSON needs a definition, and must not lose unknown fields silently.
		md := app.FrameType(defs, ex.Call, captures.Up)
		if md == nil {
			return app.Fail(app.ExitInput, fmt.Errorf("the definitions do not describe %s", term.Clean(ex.CallName())), "give definitions with --proto, or use --copy curl, which needs none")
		}
		p, err := protoform.Print(protoform.JSON, f.Data, false, md, defs.Message)
		if err != nil {
			return fmt.Errorf("frame %d: %w", f.Seq, err)
		}
		if len(p.Lost) > 0 {
			return app.Fail(app.ExitInput, fmt.Errorf("the definitions lack the field %s of frame %d, so the field would be lost in JSON", p.Lost[0], f.Seq), "use --copy curl, which keeps every byte")
		}
		var b bytes.Buffer
		if err := json.Compact(&b, p.Data); err != nil {
			return err
		}
		r.Messages = append(r.Messages, b.Bytes())
	}
	return nil
}
