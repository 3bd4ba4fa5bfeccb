package mitm

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"syscall"

	"unwire/mitm/hosts"
	"unwire/mitm/upstream"
)

// A connectFailure is a failure to connect, as the program itself would have seen it.
type connectFailure struct {
	Code    string `json:"code"`    // as the C library spells it
	Syscall string `json:"syscall"` // connect or getaddrinfo
	Address string `json:"address,omitempty"`
}

// connectErrors are the failures that a hook passes on; any other is told in
// an answer, once the client has said what it wants.
var connectErrors = []struct {
	err  error
	code string
}{
	{syscall.ECONNREFUSED, "ECONNREFUSED"},
	{syscall.EHOSTUNREACH, "EHOSTUNREACH"},
	{syscall.ENETUNREACH, "ENETUNREACH"},
	{syscall.ETIMEDOUT, "ETIMEDOUT"},
}

// connectFailureOf returns how a program's own connect would have failed; nil if
// it is not known.
func connectFailureOf(err error) *connectFailure {
	if errors.As(err, new(*upstream.Error)) {
		return nil // of the user's proxy: an answer says so
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

// serveReach answers a hook whether a server can be connected to, before the
// program believes that it is. The connection is kept a while, so that asking
// costs the server none.
//
// Source: mitm/README.md#node-hook
func (p *Proxy) serveReach(w http.ResponseWriter, r *http.Request) {
	var want struct {
		To string `json:"to"` // host:port
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxControlBody)).Decode(&want)
	if _, _, splitErr := net.SplitHostPort(want.To); err != nil || splitErr != nil {
		http.Error(w, "no such address", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	t := unread(want.To, "")
	conn, err := p.dialer.dialNew(ctx, t)
	if err == nil {
		p.dialer.spares.Keep(p.dialer.spareKey(t), conn)
	} else if u := connectFailureOf(err); u != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadGateway)
		_ = json.NewEncoder(w).Encode(u)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
