package mitm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"unwire/mitm/upstream"
)

// SOCKS 5, as RFC 1928 has it.
const (
	socksVersion            = 0x05
	socksNoAuth             = 0x00
	socksNoAcceptableMethod = 0xff
	socksConnect            = 0x01
	socksIPv4               = 0x01
	socksName               = 0x03
	socksIPv6               = 0x04
	socksTimeout            = handshakeTimeout
	maxSOCKSMethod          = 255
)

// What a SOCKS server answers to a request.
const (
	socksSucceeded               byte = 0x00
	socksFailure                 byte = 0x01
	socksNotAllowed              byte = 0x02
	socksNetworkUnreachable      byte = 0x03
	socksHostUnreachable         byte = 0x04
	socksConnectionRefused       byte = 0x05
	socksCommandNotSupported     byte = 0x07
	socksAddressTypeNotSupported byte = 0x08
)

// A socksError is a request that is not served, with the answer to it.
type socksError struct {
	reply byte
	text  string
}

func (e *socksError) Error() string { return "mitm: SOCKS: " + e.text }

// serveSOCKS serves a connection whose first byte is SOCKS's version.
func (p *Proxy) serveSOCKS(c *clientConn) {
	_ = c.SetDeadline(time.Now().Add(socksTimeout))
	addr, via, err := greetSOCKS(c)
	if c.via = via; err == nil {
		err = p.admitSOCKS(unread(addr, via))
	}
	if err != nil {
		p.log.Warn("SOCKS request not served", "err", err)
		var refused *socksError
		if errors.As(err, &refused) && refused.reply != socksNoAcceptableMethod {
			_, _ = c.Write(socksReply(refused.reply))
		}
		_ = c.Close()
		return
	}
	if !p.hosts.recordsHost(addr) && p.hosts.isDecidedByAddress(addr) {
		p.forwardSOCKS(c, addr)
		return
	}
	// As for CONNECT: an error of the server's is reported in an HTTP answer.
	if _, err := c.Write(socksReply(socksSucceeded)); err != nil {
		_ = c.Close()
		return
	}
	_ = c.SetDeadline(time.Time{})
	p.intercept(c, addr)
}

// admitSOCKS refuses a connection that has passed this proxy before, or whose server
// is not reached, if the client is another unwire.
func (p *Proxy) admitSOCKS(t target) error {
	if p.dialer.hasPassed(t.via) {
		return &socksError{socksNotAllowed, "the connection has passed this proxy before"}
	}
	if err := p.reachBefore(p.ctx, t); err != nil {
		return &socksError{socksReplyFor(err), err.Error()}
	}
	return nil
}

// forwardSOCKS tunnels a connection as it is, once the server is reached.
func (p *Proxy) forwardSOCKS(c *clientConn, addr string) {
	server, err := p.dialer.dial(p.ctx, unread(addr, c.via))
	if err != nil {
		p.log.Warn("server not reached", "addr", addr, "err", err)
		_ = c.SetDeadline(time.Now().Add(socksTimeout))
		_, _ = c.Write(socksReply(socksReplyFor(err)))
		_ = c.Close()
		return
	}
	_ = c.SetDeadline(time.Time{})
	if _, err := c.Write(socksReply(socksSucceeded)); err != nil {
		_ = server.Close()
		_ = c.Close()
		return
	}
	tunnelConns(c, server)
}

// greetSOCKS reads a client's greeting and its request, and returns the address
// that it asks for, and which instances of unwire the connection has passed.
//
// Errors: *socksError where the client should get an answer.
func greetSOCKS(c io.ReadWriter) (addr, via string, err error) {
	var head [2]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return "", "", fmt.Errorf("mitm: SOCKS greeting: %w", err)
	}
	if head[0] != socksVersion {
		return "", "", fmt.Errorf("mitm: SOCKS version %d", head[0])
	}
	var methods [maxSOCKSMethod]byte
	if _, err := io.ReadFull(c, methods[:head[1]]); err != nil {
		return "", "", fmt.Errorf("mitm: SOCKS greeting: %w", err)
	}
	method := byte(socksNoAcceptableMethod)
	for _, m := range []byte{socksNoAuth, upstream.SOCKSVia} { // the last that is offered
		if bytes.IndexByte(methods[:head[1]], m) >= 0 {
			method = m
		}
	}
	if _, err := c.Write([]byte{socksVersion, method}); err != nil {
		return "", "", err
	}
	switch method {
	case socksNoAcceptableMethod:
		return "", "", &socksError{socksNoAcceptableMethod, "the client insists on authentication"}
	case upstream.SOCKSVia:
		if via, err = readSOCKSVia(c); err != nil {
			return "", "", err
		}
	}
	addr, err = readSOCKSRequest(c)
	return addr, via, err
}

// readSOCKSVia reads what another unwire says of itself.
func readSOCKSVia(r io.Reader) (string, error) {
	var buf [1 + maxVia]byte
	if _, err := io.ReadFull(r, buf[:1]); err != nil {
		return "", fmt.Errorf("mitm: SOCKS greeting: %w", err)
	}
	via := buf[1 : 1+int(buf[0])]
	if _, err := io.ReadFull(r, via); err != nil {
		return "", fmt.Errorf("mitm: SOCKS greeting: %w", err)
	}
	return string(via), nil
}

func readSOCKSRequest(r io.Reader) (addr string, err error) {
	var head [4]byte // version, command, reserved, kind of address
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", fmt.Errorf("mitm: SOCKS request: %w", err)
	}
	if head[0] != socksVersion {
		return "", &socksError{socksFailure, fmt.Sprintf("request of version %d", head[0])}
	}
	host, err := readSOCKSHost(r, head[3])
	if err != nil {
		return "", err
	}
	var port [2]byte
	if _, err := io.ReadFull(r, port[:]); err != nil {
		return "", fmt.Errorf("mitm: SOCKS request: %w", err)
	}
	if head[1] != socksConnect {
		return "", &socksError{socksCommandNotSupported, fmt.Sprintf("command %d: only CONNECT (1) is served", head[1])}
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port[0])<<8|int(port[1]))), nil
}

func readSOCKSHost(r io.Reader, kind byte) (string, error) {
	var buf [255]byte
	size := 0
	switch kind {
	case socksIPv4:
		size = 4
	case socksIPv6:
		size = 16
	case socksName:
		if _, err := io.ReadFull(r, buf[:1]); err != nil {
			return "", fmt.Errorf("mitm: SOCKS request: %w", err)
		}
		size = int(buf[0])
	default:
		return "", &socksError{socksAddressTypeNotSupported, fmt.Sprintf("address of kind %d", kind)}
	}
	if _, err := io.ReadFull(r, buf[:size]); err != nil {
		return "", fmt.Errorf("mitm: SOCKS request: %w", err)
	}
	if kind != socksName {
		ip, _ := netip.AddrFromSlice(buf[:size])
		return ip.Unmap().String(), nil
	}
	name := string(buf[:size])
	if !isHostName(name) {
		return "", &socksError{socksFailure, fmt.Sprintf("host name %q", name)}
	}
	return name, nil
}

// isHostName reports whether a name may go into an address: what it is made of,
// not whether it exists.
func isHostName(name string) bool {
	for _, b := range []byte(name) {
		letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
		if !letter && b != '-' && b != '.' && b != '_' && b != ':' && b < 0x80 {
			return false
		}
	}
	return name != ""
}

// socksReply is an answer; where the proxy's own end is, is not told.
func socksReply(reply byte) []byte {
	return []byte{socksVersion, reply, 0, socksIPv4, 0, 0, 0, 0, 0, 0}
}

func socksReplyFor(err error) byte {
	var dns *net.DNSError
	switch {
	case errors.Is(err, errOwnAddress), errors.Is(err, upstream.ErrLoop):
		return socksNotAllowed
	case errors.As(err, new(*upstream.Error)):
		return socksFailure
	case errors.Is(err, syscall.ECONNREFUSED):
		return socksConnectionRefused
	case errors.Is(err, syscall.ENETUNREACH):
		return socksNetworkUnreachable
	case errors.Is(err, syscall.EHOSTUNREACH), errors.As(err, &dns):
		return socksHostUnreachable
	}
	return socksFailure
}
