package probe

import (
	"context"
	"strings"
)

// zeroMessages returns the errors of a server's library for a call without messages of a method whose calls
// have one. The function that returns this error also refuses a second message, after parsing the first and
// before the handler runs: grpc-go from 1.75 for methods in which only the server
// streams, and from 1.84 for unary methods; connect-go from 1.16.
//
// Source: grpc-go stream.go, (*serverStream).RecvMsg; connect-go connect.go, receiveUnaryMessage.
func zeroMessages() []string {
	return []string{
		"cardinality violation: received no request message from non-client-streaming RPC",
		"unary request has zero messages",
	}
}

// AskCardinality sends a call without any message, to determine whether the server refuses a second message
// after parsing the first; see MayComplete. It sends nothing unless the method is declared as one whose calls
// have one message of the client: the handler of another one would run, and receive the end of the messages.
//
// Errors: those of Ask; if there is a response, it is returned as well.
func (c *Client) AskCardinality(ctx context.Context) (*Answer, error) {
	if !c.o.SingleRequest || c.starts || c.Remote || c.protocol == connectUnary {
		return nil, nil
	}
	c.empty = true
	defer func() { c.empty = false }()
	a, err := c.send(ctx, "whether calls without a message are refused", "proto", nil)
	if err != nil {
		return a, err
	}
	for _, text := range zeroMessages() {
		c.refusesSecond = c.refusesSecond || !a.Accepted && strings.Contains(a.Text, text)
	}
	return a, nil
}
