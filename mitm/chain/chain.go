// Package chain detects loops of reverse proxies of the same user, in which a request would circulate forever.
// Ordinary proxies inform each other in a header (upstream.ViaHeader); a reverse proxy must look like its client
// to the server and adds nothing.
//
//	link, err := chain.Announce(listener.Addr(), "localhost:8000")
//	defer link.Close()
//	...
//	if chain.IsCycle(ctx, address) { // address: of the server to connect to
//
// Each listener of a reverse proxy has a Unix socket in a private folder. The socket is named after the
// listener's address and answers with the address of its server. IsCycle follows these links; a chain that
// returns to a listener is a cycle. The socket of a killed process refuses connections, so nothing has to be
// cleaned up.
//
// Limits: proxies of different users, in containers or on different machines do not find each other. A chain has
// at most 64 links.
package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// maxLinks limits how many reverse proxies, each forwarding to the next, are followed in search of a cycle.
	maxLinks = 64

	// askTimeout limits the wait for a response of another unwire process, which responds immediately.
	askTimeout = 250 * time.Millisecond

	// maxAnswer is the largest size of a response from another unwire, in bytes.
	maxAnswer = 1 << 10

	// maxPath is the longest path of a Unix socket that all systems support, in bytes.
	maxPath = 103
)

// A Link announces a listener of a reverse proxy to other unwire processes of the same user, through a
// Unix socket.
type Link struct {
	// listener is the Unix socket to which other processes connect.
	listener net.Listener
	// text is the response that is sent to each connection.
	text []byte
}

// An answer is the JSON that another unwire process sends when its announcement socket is connected to.
type answer struct {
	// Server is the host:port to which the listener's requests go.
	Server string `json:"server"`
}

// Announce announces, until the link is closed, that a reverse proxy forwards connections to a TCP listener to
// a server (host:port).
func Announce(listener net.Addr, server string) (*Link, error) {
	addr, ok := listener.(*net.TCPAddr)
	if !ok {
		return nil, fmt.Errorf("chain: the listener %s is not TCP", listener.Network())
	}
	dir := folder()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("chain: %w", err)
	}
	if !isPrivate(dir) {
		return nil, fmt.Errorf("chain: other users can access the folder %s", dir)
	}
	path := socketOf(dir, addr.AddrPort())
	if len(path) > maxPath {
		return nil, fmt.Errorf("chain: the path %s is too long for a socket", path)
	}
	// The listener owns its address, so an existing socket is left over.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("chain: %w", err)
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("chain: %w", err)
	}

	// Anybody who connects gets the same answer.
	text, err := json.Marshal(answer{server})
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	l := &Link{ln, text}
	go l.serve()
	return l, nil
}

// Close removes the announcement and its socket.
func (l *Link) Close() error { return l.listener.Close() }

// serve sends the announcement to each process that connects, until the link is closed.
func (l *Link) serve() {
	for {
		conn, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Probably no file descriptor is free.
			time.Sleep(askTimeout)
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(askTimeout))
		_, _ = conn.Write(l.text)
		_ = conn.Close()
	}
}

// IsCycle reports whether a connection to an address would be forwarded in a cycle of reverse proxies of this
// user.
func IsCycle(ctx context.Context, to *net.TCPAddr) bool {
	dir := folder()
	if !isPrivate(dir) {
		return false
	}
	seen := make(map[string]bool)
	at := []netip.AddrPort{to.AddrPort()}
	for range maxLinks {
		path, server := next(ctx, dir, at)
		if server == "" {
			return false
		}

		// The chain has come back to a listener.
		if seen[path] {
			return true
		}
		seen[path] = true
		at = addressesOf(ctx, server)
	}
	return false
}

// next checks whether one of the addresses is an announced reverse proxy. If so, it returns the path of the
// announcement's socket, and the server to which that proxy forwards; otherwise server is "".
func next(ctx context.Context, dir string, addresses []netip.AddrPort) (path, server string) {
	for _, a := range addresses {
		for _, ip := range []netip.Addr{a.Addr().Unmap(), netip.IPv6Unspecified(), netip.IPv4Unspecified()} {
			path = socketOf(dir, netip.AddrPortFrom(ip, a.Port()))
			server = ask(ctx, path)
			if server != "" && (!ip.IsUnspecified() || isLocal(a.Addr())) {
				return path, server
			}
		}
	}
	return "", ""
}

// ask connects to the socket of a Link and returns the announced server; "" if there is no response.
func ask(ctx context.Context, path string) string {
	if _, err := os.Lstat(path); err != nil {
		// The usual case: the address is not that of a reverse proxy.
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(askTimeout))
	return readAnswer(conn)
}

// readAnswer returns the server that another unwire announces; "" if what it sends is not an answer.
func readAnswer(conn io.Reader) string {
	var a answer
	if err := json.NewDecoder(io.LimitReader(conn, maxAnswer)).Decode(&a); err != nil {
		return ""
	}
	return a.Server
}

// addressesOf resolves a host and port to IP addresses.
func addressesOf(ctx context.Context, server string) (out []netip.AddrPort) {
	host, portText, err := net.SplitHostPort(server)
	if err != nil {
		return nil
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	for _, ip := range ips {
		out = append(out, netip.AddrPortFrom(ip, uint16(port)))
	}
	return out
}

// isLocal reports whether an IP address belongs to this machine.
func isLocal(ip netip.Addr) bool {
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip.AsSlice()) {
			return true
		}
	}
	return false
}

// folder returns the path of the folder for this user's announcement sockets.
func folder() string {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		var err error
		if dir, err = os.UserCacheDir(); err != nil {
			dir = os.TempDir()
		}
	}
	return filepath.Join(dir, "unwire-chain-"+strconv.Itoa(os.Getuid()))
}

// socketOf returns the path of the Unix socket that announces a listener with this address.
func socketOf(dir string, a netip.AddrPort) string {
	ip := a.Addr().Unmap().WithZone("").String()
	return filepath.Join(dir, fmt.Sprintf("%s-%d", strings.ReplaceAll(ip, ":", "_"), a.Port()))
}
