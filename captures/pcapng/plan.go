package pcapng

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"unwire/captures"
	"unwire/captures/transfer"
)

// firstPort is the first port for clients whose port was not recorded: the lowest ephemeral port.
const firstPort = 49152

// A plan assigns the exchanges of a capture, ordered by their start, to TCP connections that will be
// synthesized.
type plan struct {
	// exchanges are the exchanges to be written, in the order of their start times.
	exchanges []plannedExchange
	// conns are the TCP connections to be synthesized.
	conns []*connection

	// withoutPackets is the number of exchanges that cannot be written: they never reached the server, or are
	// tunnels.
	withoutPackets int

	// noHandshake is the number of WebSockets that cannot be written because their handshake is not in the
	// capture.
	noHandshake int

	// reusable maps the properties that exchanges on one connection must share (such as the host) to an
	// open connection.
	reusable map[string]*connection
	// usedPairs are the pairs of addresses that are already used by connections.
	usedPairs map[[2]netip.AddrPort]bool
	// freeClients are the results of freeClient, by the client address at which its search began and the server. The next
	// search continues there, because addresses never become free again.
	freeClients map[[2]netip.AddrPort]netip.AddrPort
	// fakeAddresses maps server names to invented addresses, for exchanges recorded without one.
	fakeAddresses map[string]netip.Addr
}

// A plannedExchange is an exchange with its connection in the plan.
type plannedExchange struct {
	// id is the number of the exchange in the capture.
	id int64
	// started is the start time of the exchange.
	started time.Time
	// conn is the synthesized connection that will carry the exchange.
	conn *connection
}

// A connection is a TCP connection that will be synthesized, with the exchanges on it.
type connection struct {
	// client is the address of the client.
	client netip.AddrPort
	// server is the address of the server.
	server netip.AddrPort
	// version is the TLS version of the connection; 0 means cleartext.
	version uint16
	// name is the server name in the TLS handshake (SNI); "" if the server is an IP address.
	name string
	// alpn is the protocol negotiated by ALPN in the TLS handshake, such as "h2"; "" for none.
	alpn string
	// h2 means that the connection carries HTTP/2.
	h2 bool
	// raw means that the connection does not carry HTTP.
	raw bool

	// running is the number of exchanges on the connection that have not been written completely.
	running int
	// unfinished means that an exchange on the connection has no recorded end.
	unfinished bool

	// link writes the connection's packets; nil before the first exchange and after the last.
	link *link
	// writer encodes exchanges in the protocol of the connection; nil before the first exchange and after the
	// last.
	writer protocolWriter

	// lastEnd is when the last exchange on an HTTP/1 connection ends.
	lastEnd time.Time
	// closed means that no further exchange may use the HTTP/1 connection.
	closed bool
}

// A protocolWriter writes the parts of exchanges onto a connection in one protocol: HTTP/1, HTTP/2, or none.
type protocolWriter interface {
	// request and response write the heads.
	request(t *exchangeWriter) error
	response(t *exchangeWriter) error

	// data writes body bytes; last means that they end the direction.
	data(t *exchangeWriter, dir captures.Direction, p []byte, last bool) error
	// end writes the end of a direction, with its trailers.
	end(t *exchangeWriter, dir captures.Direction) error
	// abort ends an exchange early; by is the side that aborts.
	abort(t *exchangeWriter, by captures.Direction) error
}

// makePlan reads all exchanges of a capture, and assigns them to connections.
func makePlan(ctx context.Context, src transfer.Source) (*plan, error) {
	p := &plan{
		reusable: map[string]*connection{}, fakeAddresses: map[string]netip.Addr{},
		usedPairs: map[[2]netip.AddrPort]bool{}, freeClients: map[[2]netip.AddrPort]netip.AddrPort{},
	}
	// kept has only what the plan needs, without headers, to save memory.
	var kept []*captures.Exchange
	for ex, err := range src.Exchanges(ctx) {
		if err != nil {
			return nil, fmt.Errorf("pcapng: %w", err)
		}
		switch {
		case ex.Transport == captures.WebSocket:
			p.noHandshake++
			continue
		case ex.Outcome == captures.Failed, ex.Method == http.MethodConnect && !isExtendedConnect(ex), isRaw(ex) && ex.BytesUp+ex.BytesDown == 0:
			p.withoutPackets++
			continue
		}

		// Framing needs the headers, so decide here what the connection needs to know.
		short := *ex
		short.RequestHeaders, short.RequestTrailers, short.ResponseHeaders, short.ResponseTrailers = nil, nil, nil, nil
		if !isHTTP2(ex) && (ex.Outcome != captures.Complete || framingOf(ex, captures.Down, nil) == untilClose || ex.Status == http.StatusSwitchingProtocols) {
			short.Error = lastOnConnection
		}
		kept = append(kept, &short)
	}

	// Connections are assigned in the order of time.
	slices.SortStableFunc(kept, func(a, b *captures.Exchange) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	for _, ex := range kept {
		c := p.connection(ex)
		c.running++
		p.exchanges = append(p.exchanges, plannedExchange{ex.ID, ex.Started, c})
	}
	p.reusable, p.fakeAddresses = nil, nil
	return p, nil
}

// lastOnConnection is stored in Exchange.Error by makePlan. It means that the connection is closed after the
// exchange.
const lastOnConnection = "last"

// isRaw reports whether an exchange does not carry HTTP.
func isRaw(ex *captures.Exchange) bool { return ex.Transport != captures.HTTP }

// isHTTP2 reports whether an exchange is written as HTTP/2: if it was recorded over HTTP/2 or HTTP/3.
func isHTTP2(ex *captures.Exchange) bool {
	return ex.HTTP == "2" || ex.HTTP == "3" || ex.HTTP == "" && ex.TLS.ALPN == "h2"
}

// connection returns the connection on which an exchange is written: an existing one if possible, or a new one.
func (p *plan) connection(ex *captures.Exchange) *connection {
	c := &connection{h2: isHTTP2(ex) && !isRaw(ex), raw: isRaw(ex), name: ex.TLS.ServerName, alpn: ex.TLS.ALPN}
	u, err := url.Parse(ex.URL)
	if err != nil {
		u = new(url.URL)
	}
	if ex.TLS.Version != "" || u.Scheme == "https" || u.Scheme == "tls" {
		c.version = tls.VersionTLS13
		if ex.TLS.Version == "1.2" {
			c.version = tls.VersionTLS12
		}
	}
	if c.h2 {
		c.alpn = "h2"
	} else if c.alpn != "" && !c.raw {
		c.alpn = "http/1.1"
	}
	if c.name == "" && net.ParseIP(u.Hostname()) == nil {
		c.name = u.Hostname()
	}

	// Exchanges with the same key can share a connection.
	key := fmt.Sprintf("%s|%s|%t|%d|%s|%s", ex.Client, ex.Server, c.h2, c.version, c.name, c.alpn)
	if ex.Server == "" {
		key += "|" + u.Host
	}
	if ex.Method == "" || c.raw {
		// A response without a request gets a connection of its own.
		key += fmt.Sprintf("|%d", ex.ID)
	}
	if old := p.reusable[key]; old != nil && (old.h2 || !old.closed && old.lastEnd.Before(ex.Started)) {
		old.setCloseAfter(ex)
		return old
	}
	p.placeOnConnection(c, ex, u)
	c.setCloseAfter(ex)
	p.reusable[key] = c
	p.conns = append(p.conns, c)
	return c
}

// setCloseAfter updates the connection for its new last exchange ex, after which it may have to be closed.
func (c *connection) setCloseAfter(ex *captures.Exchange) {
	c.lastEnd, c.closed = ex.Started.Add(ex.Duration), ex.Error == lastOnConnection
}

// placeOnConnection chooses the addresses of a connection: the recorded ones of ex if they are valid, are of
// the same IP version, and are not used by another connection; otherwise invented ones. u is the exchange's
// URL.
func (p *plan) placeOnConnection(c *connection, ex *captures.Exchange, u *url.URL) {
	server, err := netip.ParseAddrPort(ex.Server)
	if err != nil {
		server = p.serverAddress(cmp.Or(ex.Server, u.Host), c.version != 0)
	}
	server = netip.AddrPortFrom(server.Addr().Unmap().WithZone(""), server.Port())

	// Both addresses must belong to the same family.
	client, err := netip.ParseAddrPort(ex.Client)
	client = netip.AddrPortFrom(client.Addr().Unmap().WithZone(""), client.Port())
	if err != nil || client.Addr().Is4() != server.Addr().Is4() {
		// RFC 5737 reserves it for documentation.
		addr := netip.AddrFrom4([4]byte{192, 0, 2, 1})
		if server.Addr().Is6() {
			// RFC 3849 reserves it for documentation.
			addr = netip.MustParseAddr("2001:db8::1")
		}
		client = netip.AddrPortFrom(addr, max(client.Port(), 1))
		if err != nil {
			client = netip.AddrPortFrom(addr, firstPort)
		}
	}

	// Two connections must not have the same addresses and ports.
	if p.usedPairs[[2]netip.AddrPort{client, server}] {
		client = p.freeClient(client.Addr(), server)
	}
	p.usedPairs[[2]netip.AddrPort{client, server}] = true
	c.client, c.server = client, server
}

// freeClient returns the first client address, from firstPort of addr on, that no connection to server uses yet.
func (p *plan) freeClient(addr netip.Addr, server netip.AddrPort) netip.AddrPort {
	search := [2]netip.AddrPort{netip.AddrPortFrom(addr, firstPort), server}
	client, ok := p.freeClients[search]
	if !ok {
		client = search[0]
	}
	for p.usedPairs[[2]netip.AddrPort{client, server}] {
		if client.Port() == math.MaxUint16 {
			client = netip.AddrPortFrom(client.Addr().Next(), firstPort)
		} else {
			client = netip.AddrPortFrom(client.Addr(), client.Port()+1)
		}
	}
	p.freeClients[search] = client
	return client
}

// serverAddress returns the address of a server. If only its name is known, the address is invented, from the
// range for benchmarks (RFC 2544). secure selects the default port 443 instead of 80.
func (p *plan) serverAddress(hostPort string, secure bool) netip.AddrPort {
	host, text, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = hostPort
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		port = 80
		if secure {
			port = 443
		}
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	addr, err := netip.ParseAddr(host)
	if err != nil {
		var known bool
		if addr, known = p.fakeAddresses[host]; !known {
			var b [4]byte
			binary.BigEndian.PutUint32(b[:], 198<<24|18<<16|uint32(len(p.fakeAddresses)+1)&0x1ffff)
			addr = netip.AddrFrom4(b)
			p.fakeAddresses[host] = addr
		}
	}
	return netip.AddrPortFrom(addr, uint16(port))
}
