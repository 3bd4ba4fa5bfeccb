// Library is a program of another module that decodes a call, infers definitions
// from it and checks it against them.
package main

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log"
	"slices"

	"unwire/captures"
	"unwire/captures/profile"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/wire"
	"unwire/schema/check"
	"unwire/schema/infer"
)

// A capture holds one exchange in memory.
type capture struct {
	exchange *captures.Exchange
	chunks   []captures.Chunk
}

func (c *capture) Exchange(context.Context, int64) (*captures.Exchange, error) {
	return c.exchange, nil
}

func (c *capture) Exchanges(context.Context) iter.Seq2[*captures.Exchange, error] {
	return func(yield func(*captures.Exchange, error) bool) { yield(c.exchange, nil) }
}

// Profile is nil: nothing is known of the service.
func (c *capture) Profile() *profile.Profile { return nil }

func (c *capture) Chunks(_ context.Context, _, from int64) iter.Seq2[captures.Chunk, error] {
	return func(yield func(captures.Chunk, error) bool) {
		for _, chunk := range c.chunks {
			if chunk.Seq >= from && !yield(chunk, nil) {
				return
			}
		}
	}
}

func main() {
	log.SetFlags(0)
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	// A tree gives its bytes back.
	message := []byte("\x0a\x05hello\x10\x96\x01")
	tree := wire.Parse(message, wire.Options{})
	same, err := wire.Splice(tree, nil)
	if err != nil {
		return err
	}
	if !bytes.Equal(same, message) {
		return fmt.Errorf("the tree has %x, not %x", same, message)
	}

	// The call of a Connect stream: one message up, two down.
	media := captures.Headers{{Name: "content-type", Value: "application/connect+proto"}}
	down := envelope.Append(envelope.Append(nil, 0, message), 0, message)
	down = envelope.Append(down, envelope.EndStream, []byte("{}"))
	c := &capture{
		exchange: &captures.Exchange{
			ID: 1, Method: "POST", URL: "https://api.example/shop.v1.Shop/Watch", HTTP: "2", Status: 200,
			RequestHeaders: media, ResponseHeaders: media, Outcome: captures.Complete,
		},
		chunks: []captures.Chunk{
			{Exchange: 1, Seq: 0, Dir: captures.Up, Data: envelope.Append(nil, 0, message)},
			{Exchange: 1, Seq: 1, Dir: captures.Down, Data: down},
		},
	}
	exchange, err := decode.Decode(ctx, c, 1, decode.Options{})
	if err != nil {
		return err
	}

	gathered, err := infer.Gather(ctx, c, infer.GatherOptions{})
	if err != nil {
		return err
	}
	inferred, err := infer.Infer(gathered.Evidence, infer.Options{})
	if err != nil {
		return err
	}
	checker := check.NewChecker(inferred.Schema, check.Options{})
	checker.Add(exchange)
	report := checker.Report()

	protocols := []string{string(exchange.Protocol), exchange.Code}
	fmt.Println(len(tree.Nodes), len(exchange.Frames), slices.Sorted(keys(inferred.Files)), protocols, report.Frames, report.Decoded, report.Clean())
	return nil
}

func keys(files map[string]string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range files {
			if !yield(name) {
				return
			}
		}
	}
}
