package launch

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"unwire/mitm/quic"
)

// quicPort is the port of HTTP/3.
const quicPort = 443

// quicVersions are the first bytes of the QUIC versions with which clients open connections.
var quicVersions = [][]byte{
	binary.BigEndian.AppendUint32(nil, quic.Version1),
	binary.BigEndian.AppendUint32(nil, quic.Version2),
	{0xff, 0, 0}, // drafts
}

// A family contains the network configuration of the namespace for one IP version.
type family struct {
	// table is the IP version in terms of nf_tables.
	table nftables.TableFamily
	// proto is the protocol number for the TPROXY rules.
	proto byte

	// loopback are the loopback addresses. Connections to them go to the host unless a program in the namespace
	// listens there.
	loopback netip.Prefix

	// listen is the address of the sockets that receive all traffic.
	listen netip.Addr

	// own is the namespace's own address, from which its programs send packets.
	own netip.Prefix

	// dstAt is the offset of the destination address in the IP header, in bytes.
	dstAt uint32

	// prohibited and portUnreachable are ICMP codes with which packets are refused.
	prohibited, portUnreachable uint8

	// tcp and udp are the ports of the sockets that receive all traffic.
	tcp, udp uint16
}

// ipv4 returns the configuration for IPv4. The own address is the dummy address of RFC 7600.
func ipv4() *family {
	return &family{
		table: nftables.TableFamilyIPv4, proto: unix.NFPROTO_IPV4, dstAt: 16,
		loopback: netip.MustParsePrefix("127.0.0.0/8"), listen: netip.IPv4Unspecified(), own: netip.MustParsePrefix("192.0.0.8/32"),
		prohibited: 13, portUnreachable: 3,
	}
}

// ipv6 returns the configuration for IPv6. The own address is a unique local address.
func ipv6() *family {
	return &family{
		table: nftables.TableFamilyIPv6, proto: unix.NFPROTO_IPV6, dstAt: 24,
		loopback: netip.MustParsePrefix("::1/128"), listen: netip.IPv6Unspecified(), own: netip.MustParsePrefix("fd75:6e77:6972:6500::1/128"),
		prohibited: 1, portUnreachable: 4,
	}
}

// A rulesError means that the kernel rejected the nf_tables rules.
type rulesError struct {
	// err is the error of the kernel.
	err error
}

// Error returns the kernel's error.
func (e *rulesError) Error() string { return fmt.Sprintf("nf_tables rules: %v", e.err) }

// Unwrap returns the kernel's error.
func (e *rulesError) Unwrap() error { return e.err }

// redirectAll adds nf_tables rules that make the kernel pass all traffic to the transparent sockets. All
// addresses are local, so each packet arrives again at the loopback device. There, TPROXY selects the socket
// without changing the packet.
func (f *family) redirectAll() error {
	c, err := nftables.New()
	if err != nil {
		return &rulesError{err}
	}
	table := c.AddTable(&nftables.Table{Name: "unwire", Family: f.table})
	policy := nftables.ChainPolicyAccept
	chain := c.AddChain(&nftables.Chain{
		Name: "in", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityMangle, Policy: &policy,
	})
	accept := []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}
	refuse := func(code uint8) []expr.Any {
		return []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: code}}
	}
	rules := [][][]expr.Any{
		// A program in the namespace listens, or waits for an answer.
		{f.matchDestination(f.loopback), matchOwnSocket(), accept},
		{f.matchDestination(f.own), accept},
		{matchProtocol(unix.IPPROTO_TCP), f.tproxy(f.tcp), accept},
	}
	for _, version := range quicVersions {
		// The relay refuses it with a QUIC packet and reports it.
		rules = append(rules, [][]expr.Any{matchProtocol(unix.IPPROTO_UDP), matchPort(quicPort), matchQUIC(version), f.tproxy(f.udp), accept})
	}
	rules = append(rules, [][][]expr.Any{
		{matchProtocol(unix.IPPROTO_UDP), matchPort(quicPort), refuse(f.portUnreachable)},
		{matchProtocol(unix.IPPROTO_UDP), f.tproxy(f.udp), accept},
		{f.matchDestination(f.loopback), accept},
		{refuse(f.prohibited)},
	}...)
	for _, rule := range rules {
		var exprs []expr.Any
		for _, part := range rule {
			exprs = append(exprs, part...)
		}
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: exprs})
	}
	if err := c.Flush(); err != nil {
		return &rulesError{err}
	}
	return nil
}

// matchDestination returns nf_tables expressions that match packets to a range of destination addresses.
func (f *family) matchDestination(p netip.Prefix) []expr.Any {
	addr := p.Addr().AsSlice()
	size := uint32(len(addr))
	mask := net.CIDRMask(p.Bits(), p.Addr().BitLen())
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: f.dstAt, Len: size},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: size, Mask: mask, Xor: make([]byte, size)},
		&expr.Cmp{Register: 1, Op: expr.CmpOpEq, Data: p.Masked().Addr().AsSlice()},
	}
}

// matchOwnSocket returns nf_tables expressions that match packets for which a program in the namespace has a
// socket.
func matchOwnSocket() []expr.Any {
	return []expr.Any{
		&expr.Socket{Key: expr.SocketKeyTransparent, Register: 1},
		&expr.Cmp{Register: 1, Op: expr.CmpOpEq, Data: []byte{0}},
	}
}

// matchProtocol returns nf_tables expressions that match packets of an IP protocol, such as TCP.
func matchProtocol(number byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Register: 1, Op: expr.CmpOpEq, Data: []byte{number}},
	}
}

// matchPort returns nf_tables expressions that match packets to a destination port.
func matchPort(port uint16) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Register: 1, Op: expr.CmpOpEq, Data: binaryutil.BigEndian.PutUint16(port)},
	}
}

// matchQUIC returns nf_tables expressions that match UDP datagrams with a long header of a QUIC version.
func matchQUIC(version []byte) []expr.Any {
	// The payload follows the UDP header.
	const payload = 8
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: payload, Len: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 1, Mask: []byte{quic.LongHeader}, Xor: []byte{0}},
		&expr.Cmp{Register: 1, Op: expr.CmpOpEq, Data: []byte{quic.LongHeader}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: payload + 1, Len: uint32(len(version))},
		&expr.Cmp{Register: 1, Op: expr.CmpOpEq, Data: version},
	}
}

// tproxy returns nf_tables expressions that pass a packet to the socket of its connection, or to the one that
// listens on a port.
func (f *family) tproxy(port uint16) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
		&expr.TProxy{Family: f.proto, TableFamily: f.proto, RegPort: 1},
	}
}
