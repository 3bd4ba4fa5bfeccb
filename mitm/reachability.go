package mitm

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"syscall"

	"unwire/captures"
	"unwire/mitm/hosts"
	"unwire/mitm/upstream"
)

// A connectFailure describes a failed connection to a server in the terms of the operating system, as the
// client program would have seen it without the proxy.
type connectFailure struct {
	// Code is the name of the system's error, such as ECONNREFUSED.
	Code string `json:"code"`
	// Syscall is the failed system call, connect or getaddrinfo.
	Syscall string `json:"syscall"`
	// Address is the server's address to which the connection failed; "" if its name was not resolved.
	Address string `json:"address,omitempty"`
}

// connectErrors are the errors of connecting that the Node hook reproduces. Others are reported in the response
// to the program's request.
var connectErrors = []struct {
	err  error
	code string
}{
	{syscall.ECONNREFUSED, "ECONNREFUSED"},
	{syscall.EHOSTUNREACH, "EHOSTUNREACH"},
	{syscall.ENETUNREACH, "ENETUNREACH"},
	{syscall.ETIMEDOUT, "ETIMEDOUT"},
}

// connectFailureOf returns how the program's own connect call would have failed with err, or nil if that is
// unknown.
func connectFailureOf(err error) *connectFailure {
	if errors.As(err, new(*upstream.Error)) {
		// The error is that of the user's proxy, which a response reports.
		return nil
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		if dns.IsNotFound {
			return &connectFailure{Code: "ENOTFOUND", Syscall: "getaddrinfo"}
		}
		return nil
	}
	for _, c := range connectErrors {
		if !errors.Is(err, c.err) {
			continue
		}
		u := &connectFailure{Code: c.code, Syscall: "connect"}
		var op *net.OpError
		if errors.As(err, &op) && op.Addr != nil {
			u.Address = hosts.Name(op.Addr.String())
		}
		return u
	}
	return nil
}

// serveReach handles a request of the Node hook: it reports whether a server can be connected to, so that the
// program's own connect call fails if not, which is recorded. The opened connection is kept for the request that
// follows.
//
// Source: mitm/README.md#node-hook
func (p *Proxy) serveReach(w http.ResponseWriter, r *http.Request, c *clientConn) {
	var want struct {
		To string `json:"to"` // host:port
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxControlBody)).Decode(&want)
	if _, _, splitErr := net.SplitHostPort(want.To); err != nil || splitErr != nil {
		http.Error(w, "the address is not HOST:PORT", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()

	// Connect in the same way as for a request.
	t := httpsTarget(want.To, "")
	t = p.dialer.mapped(t)
	conn, err := p.dialer.dialNew(ctx, t)
	if err == nil {
		p.dialer.spares.Keep(p.dialer.spareKey(t), conn)
	} else if u := connectFailureOf(err); u != nil {
		p.recordUnreached(c, t, captures.RawTCP, err)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadGateway)
		_ = json.NewEncoder(w).Encode(u)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
