// Package socks implements the server side of SOCKS 5, without authentication and for CONNECT only. Package mitm
// uses it.
//
//	addr, via, err := socks.Greet(conn)
//	...
//	_, err = conn.Write(socks.Reply(socks.Succeeded))
//
// Source: RFC 1928
package socks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
)

// Constants of the SOCKS 5 protocol, RFC 1928.
const (
	// Version is the first byte that a client sends.
	Version = 0x05

	// MethodVia is an authentication method from the range for private use, which one unwire offers to the next.
	// After the server selects it, the client sends a length (one byte) and the ids of the unwire proxies that
	// the connection has passed through.
	MethodVia = 0xf1

	// MaxVia is the largest size of the list of proxy ids, in bytes.
	MaxVia = 255

	noAuth             = 0x00
	noAcceptableMethod = 0xff
	connect            = 0x01
	addressIPv4        = 0x01
	addressName        = 0x03
	addressIPv6        = 0x04
	maxMethods         = 255
)

// Reply codes of a SOCKS server.
const (
	Succeeded               byte = 0x00
	Failure                 byte = 0x01
	NotAllowed              byte = 0x02
	NetworkUnreachable      byte = 0x03
	HostUnreachable         byte = 0x04
	ConnectionRefused       byte = 0x05
	commandNotSupported     byte = 0x07
	addressTypeNotSupported byte = 0x08
)

// An Error is a refused SOCKS request, with the reply code for the client.
type Error struct {
	// Reply is the reply code for the client (RFC 1928, section 6).
	Reply byte
	// Text describes the refusal.
	Text string
}

// Error returns the text.
func (e *Error) Error() string { return "SOCKS: " + e.Text }

// Greet performs the server's side of the SOCKS handshake up to the client's request. It returns the requested
// address, host:port, and the ids of the unwire proxies that the connection has passed through.
//
// Errors: *Error if the client should receive a reply.
func Greet(c io.ReadWriter) (addr, via string, err error) {
	var head [2]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return "", "", fmt.Errorf("the SOCKS greeting is malformed: %w", err)
	}
	if head[0] != Version {
		return "", "", fmt.Errorf("SOCKS version %d is not supported", head[0])
	}
	var methods [maxMethods]byte
	if _, err := io.ReadFull(c, methods[:head[1]]); err != nil {
		return "", "", fmt.Errorf("the SOCKS greeting is malformed: %w", err)
	}
	method := byte(noAcceptableMethod)
	// The last method that the client offers is used.
	for _, m := range []byte{noAuth, MethodVia} {
		if bytes.IndexByte(methods[:head[1]], m) >= 0 {
			method = m
		}
	}
	if _, err := c.Write([]byte{Version, method}); err != nil {
		return "", "", err
	}

	// MethodVia is followed by the ids.
	switch method {
	case noAcceptableMethod:
		return "", "", errors.New("the SOCKS client requires authentication, which unwire does not offer")
	case MethodVia:
		if via, err = readVia(c); err != nil {
			return "", "", err
		}
	}
	addr, err = readRequest(c)
	return addr, via, err
}

// readVia reads the ids of the unwire proxies that the connection has passed through (see MethodVia).
func readVia(r io.Reader) (string, error) {
	var buf [1 + MaxVia]byte
	if _, err := io.ReadFull(r, buf[:1]); err != nil {
		return "", fmt.Errorf("the SOCKS greeting is malformed: %w", err)
	}
	via := buf[1 : 1+int(buf[0])]
	if _, err := io.ReadFull(r, via); err != nil {
		return "", fmt.Errorf("the SOCKS greeting is malformed: %w", err)
	}
	return string(via), nil
}

// readRequest reads the client's request and returns the requested address, host:port.
func readRequest(r io.Reader) (addr string, err error) {
	var head [4]byte // version, command, reserved, kind of address
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", fmt.Errorf("the SOCKS request is malformed: %w", err)
	}
	if head[0] != Version {
		return "", &Error{Failure, fmt.Sprintf("request of version %d", head[0])}
	}
	host, err := readHost(r, head[3])
	if err != nil {
		return "", err
	}

	// Read the whole request before refusing it, so that the client receives the reply.
	var port [2]byte
	if _, err := io.ReadFull(r, port[:]); err != nil {
		return "", fmt.Errorf("the SOCKS request is malformed: %w", err)
	}
	if head[1] != connect {
		return "", &Error{commandNotSupported, fmt.Sprintf("command %d: only CONNECT (1) is supported", head[1])}
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port[0])<<8|int(port[1]))), nil
}

// readHost reads a host of the address type kind: an IP address or a name.
func readHost(r io.Reader, kind byte) (string, error) {
	var buf [255]byte
	size := 0
	switch kind {
	case addressIPv4:
		size = 4
	case addressIPv6:
		size = 16
	case addressName:
		if _, err := io.ReadFull(r, buf[:1]); err != nil {
			return "", fmt.Errorf("the SOCKS request is malformed: %w", err)
		}
		size = int(buf[0])
	default:
		return "", &Error{addressTypeNotSupported, fmt.Sprintf("address of kind %d", kind)}
	}
	if _, err := io.ReadFull(r, buf[:size]); err != nil {
		return "", fmt.Errorf("the SOCKS request is malformed: %w", err)
	}

	// IPv4 addresses in IPv6 form are normalised, so that host patterns match.
	if kind != addressName {
		ip, _ := netip.AddrFromSlice(buf[:size])
		return ip.Unmap().String(), nil
	}
	name := string(buf[:size])
	if !isHostName(name) {
		return "", &Error{Failure, fmt.Sprintf("host name %q", name)}
	}
	return name, nil
}

// isHostName reports whether a name contains only characters that are valid in an address.
func isHostName(name string) bool {
	for _, b := range []byte(name) {
		letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
		if !letter && b != '-' && b != '.' && b != '_' && b != ':' && b < 0x80 {
			return false
		}
	}
	return name != ""
}

// Reply returns the message with a reply code. It contains no address of the proxy.
func Reply(reply byte) []byte {
	return []byte{Version, reply, 0, addressIPv4, 0, 0, 0, 0, 0, 0}
}
