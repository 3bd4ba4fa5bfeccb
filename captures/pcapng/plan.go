package pcapng

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
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

// firstPort is the first of the ports for connections that have none recorded.
const firstPort = 49152

// A plan says which exchanges there are, by the time of their beginning, and
// which connections carry them.
type plan struct {
	items   []item
	conns   []*connection
	leftOut int

	noHandshake int

	byKey map[string]*connection
	used  map[[2]netip.AddrPort]bool
	names map[string]netip.Addr // for servers whose addresses are not known
}

// An item is an exchange of the plan.
type item struct {
	id      int64
	started time.Time
	conn    *connection
}

// A connection is one that will be made.
type connection struct {
	client, server netip.AddrPort
	version        uint16 // of TLS; 0 is cleartext
	name, alpn     string
	h2             bool
	raw            bool // there is no HTTP on it

	left    int  // exchanges that have not ended
	open    bool // something on it has no end
	link    *link
	speaker protocolWriter

	until  time.Time // HTTP/1: when the last exchange has ended
	closed bool      // HTTP/1: nothing may follow
}

// A protocolWriter puts the parts of exchanges onto a connection.
type protocolWriter interface {
	request(t *exchangeWriter) error
	response(t *exchangeWriter) error
	data(t *exchangeWriter, dir captures.Direction, p []byte, last bool) error
	// end ends a direction, with its trailers.
	end(t *exchangeWriter, dir captures.Direction) error
	cut(t *exchangeWriter, by captures.Direction) error
}

func makePlan(ctx context.Context, src transfer.Source) (*plan, error) {
	p := &plan{byKey: map[string]*connection{}, used: map[[2]netip.AddrPort]bool{}, names: map[string]netip.Addr{}}
	var kept []*captures.Exchange // with what the plan needs, and no headers
	for ex, err := range src.Exchanges(ctx) {
		if err != nil {
			return nil, fmt.Errorf("pcapng: %w", err)
		}
		switch {
		case ex.Transport == captures.WebSocket:
			p.noHandshake++
			continue
		case ex.Outcome == captures.Failed, ex.Method == http.MethodConnect && !isExtendedConnect(ex), isRaw(ex) && ex.BytesUp+ex.BytesDown == 0:
			p.leftOut++
			continue
		}
		short := *ex
		short.RequestHeaders, short.RequestTrailers, short.ResponseHeaders, short.ResponseTrailers = nil, nil, nil, nil
		if !isHTTP2(ex) && (ex.Outcome != captures.Complete || framingOf(ex, captures.Down, nil) == untilClose || ex.Status == http.StatusSwitchingProtocols) {
			short.Error = lastOnConnection
		}
		kept = append(kept, &short)
	}
	slices.SortStableFunc(kept, func(a, b *captures.Exchange) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	for _, ex := range kept {
		c := p.connection(ex)
		c.left++
		p.items = append(p.items, item{ex.ID, ex.Started, c})
	}
	p.byKey, p.names = nil, nil
	return p, nil
}

// lastOnConnection marks an exchange of the plan behind which its connection ends.
const lastOnConnection = "last"

// isRaw reports whether an exchange is a connection that has no HTTP in it.
func isRaw(ex *captures.Exchange) bool { return ex.Transport != captures.HTTP }

func isHTTP2(ex *captures.Exchange) bool {
	return ex.HTTP == "2" || ex.HTTP == "3" || ex.HTTP == "" && ex.TLS.ALPN == "h2"
}

// connection finds the connection of an exchange, or makes one.
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
	key := fmt.Sprintf("%s|%s|%t|%d|%s|%s", ex.Client, ex.Server, c.h2, c.version, c.name, c.alpn)
	if ex.Server == "" {
		key += "|" + u.Host
	}
	if ex.Method == "" || c.raw {
		key += fmt.Sprintf("|%d", ex.ID) // an answer without its request stands alone
	}
	if old := p.byKey[key]; old != nil && (old.h2 || !old.closed && old.until.Before(ex.Started)) {
		old.setCloseAfter(ex)
		return old
	}
	p.placeOnConnection(c, ex, u)
	c.setCloseAfter(ex)
	p.byKey[key] = c
	p.conns = append(p.conns, c)
	return c
}

func (c *connection) setCloseAfter(ex *captures.Exchange) {
	c.until, c.closed = ex.Started.Add(ex.Duration), ex.Error == lastOnConnection
}

// placeOnConnection gives a connection its addresses: those that were recorded as far as
// they are addresses of one family and of no other connection.
func (p *plan) placeOnConnection(c *connection, ex *captures.Exchange, u *url.URL) {
	server, err := netip.ParseAddrPort(ex.Server)
	if err != nil {
		server = p.server(cmp.Or(ex.Server, u.Host), c.version != 0)
	}
	server = netip.AddrPortFrom(server.Addr().Unmap().WithZone(""), server.Port())
	client, err := netip.ParseAddrPort(ex.Client)
	client = netip.AddrPortFrom(client.Addr().Unmap().WithZone(""), client.Port())
	if err != nil || client.Addr().Is4() != server.Addr().Is4() {
		addr := netip.AddrFrom4([4]byte{192, 0, 2, 1}) // RFC 5737
		if server.Addr().Is6() {
			addr = netip.MustParseAddr("2001:db8::1") // RFC 3849
		}
		client = netip.AddrPortFrom(addr, max(client.Port(), 1))
		if err != nil {
			client = netip.AddrPortFrom(addr, firstPort)
		}
	}
	for port := uint16(firstPort); p.used[[2]netip.AddrPort{client, server}]; port++ {
		if port == 0 { // all of this client's are taken
			client = netip.AddrPortFrom(client.Addr().Next(), firstPort)
			port = firstPort
		}
		client = netip.AddrPortFrom(client.Addr(), port)
	}
	p.used[[2]netip.AddrPort{client, server}] = true
	c.client, c.server = client, server
}

// server is an address for a name: of the range for benchmarks, RFC 2544.
func (p *plan) server(hostPort string, secure bool) netip.AddrPort {
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
		if addr, known = p.names[host]; !known {
			var b [4]byte
			binary.BigEndian.PutUint32(b[:], 198<<24|18<<16|uint32(len(p.names)+1)&0x1ffff)
			addr = netip.AddrFrom4(b)
			p.names[host] = addr
		}
	}
	return netip.AddrPortFrom(addr, uint16(port))
}
