// Package socks has the server's side of SOCKS 5: what a client asks for, and the
// answers to it.
//
//	addr, via, err := socks.Greet(conn)
//	...
//	_, err = conn.Write(socks.Reply(socks.Succeeded))
//
// Served is CONNECT without authentication.
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

// SOCKS 5, as RFC 1928 has it.
const (
	// Version is the first byte that a client sends.
	Version = 0x05

	// MethodVia is the method of authentication that one unwire offers to the next:
	// behind the answer that chooses it come a length, one byte, and the names of
	// the instances that the connection has passed. It is one of those that RFC 1928
	// leaves to private use.
	MethodVia = 0xf1

	// MaxVia is how long those names may be, in bytes.
	MaxVia = 255

	noAuth             = 0x00
	noAcceptableMethod = 0xff
	connect            = 0x01
	addressIPv4        = 0x01
	addressName        = 0x03
	addressIPv6        = 0x04
	maxMethods         = 255
)

// What a SOCKS server answers to a request.
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

// An Error is a request that is not served, with the answer to it.
type Error struct {
	Reply byte
	Text  string
}

func (e *Error) Error() string { return "SOCKS: " + e.Text }

// Greet reads a client's greeting and its request, and returns the address
// that it asks for, and which instances of unwire the connection has passed.
//
// Errors: *Error where the client should get an answer.
func Greet(c io.ReadWriter) (addr, via string, err error) {
	var head [2]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return "", "", fmt.Errorf("SOCKS greeting: %w", err)
	}
	if head[0] != Version {
		return "", "", fmt.Errorf("SOCKS version %d", head[0])
	}
	var methods [maxMethods]byte
	if _, err := io.ReadFull(c, methods[:head[1]]); err != nil {
		return "", "", fmt.Errorf("SOCKS greeting: %w", err)
	}
	method := byte(noAcceptableMethod)
	for _, m := range []byte{noAuth, MethodVia} { // the last one offered
		if bytes.IndexByte(methods[:head[1]], m) >= 0 {
			method = m
		}
	}
	if _, err := c.Write([]byte{Version, method}); err != nil {
		return "", "", err
	}
	switch method {
	case noAcceptableMethod:
		return "", "", errors.New("SOCKS greeting: the client insists on authentication")
	case MethodVia:
		if via, err = readVia(c); err != nil {
			return "", "", err
		}
	}
	addr, err = readRequest(c)
	return addr, via, err
}

// readVia reads the names of the instances of unwire that a connection has passed.
func readVia(r io.Reader) (string, error) {
	var buf [1 + MaxVia]byte
	if _, err := io.ReadFull(r, buf[:1]); err != nil {
		return "", fmt.Errorf("SOCKS greeting: %w", err)
	}
	via := buf[1 : 1+int(buf[0])]
	if _, err := io.ReadFull(r, via); err != nil {
		return "", fmt.Errorf("SOCKS greeting: %w", err)
	}
	return string(via), nil
}

func readRequest(r io.Reader) (addr string, err error) {
	var head [4]byte // version, command, reserved, kind of address
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", fmt.Errorf("SOCKS request: %w", err)
	}
	if head[0] != Version {
		return "", &Error{Failure, fmt.Sprintf("request of version %d", head[0])}
	}
	host, err := readHost(r, head[3])
	if err != nil {
		return "", err
	}
	var port [2]byte
	if _, err := io.ReadFull(r, port[:]); err != nil {
		return "", fmt.Errorf("SOCKS request: %w", err)
	}
	if head[1] != connect {
		return "", &Error{commandNotSupported, fmt.Sprintf("command %d: only CONNECT (1) is served", head[1])}
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port[0])<<8|int(port[1]))), nil
}

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
			return "", fmt.Errorf("SOCKS request: %w", err)
		}
		size = int(buf[0])
	default:
		return "", &Error{addressTypeNotSupported, fmt.Sprintf("address of kind %d", kind)}
	}
	if _, err := io.ReadFull(r, buf[:size]); err != nil {
		return "", fmt.Errorf("SOCKS request: %w", err)
	}
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

// Reply is an answer; where the proxy's own end is, is not told.
func Reply(reply byte) []byte {
	return []byte{Version, reply, 0, addressIPv4, 0, 0, 0, 0, 0, 0}
}
