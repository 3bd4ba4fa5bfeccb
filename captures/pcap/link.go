package pcap

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// A linkType is what a packet begins with, as pcap files number it. gopacket's
// own type has no room for the newer ones.
//
// Source: https://www.tcpdump.org/linktypes.html
type linkType uint16

const (
	linkNull     linkType = 0
	linkEthernet linkType = 1
	linkRawBSD   linkType = 12 // raw IP, as some systems number it
	linkRawOpen  linkType = 14
	linkRaw      linkType = 101
	linkLoop     linkType = 108
	linkSLL      linkType = 113
	linkIPv4     linkType = 228
	linkIPv6     linkType = 229
	linkSLL2     linkType = 276
)

// Why a packet is passed over.
var (
	errNotTCP   = errors.New("not TCP over IP")
	errFragment = errors.New("a fragment of an IP packet")
	errLink     = errors.New("a link type that is not read")
)

// A segment is a TCP segment.
type segment struct {
	src, dst           netip.AddrPort
	seq                uint32
	syn, fin, rst, ack bool
	data               []byte // until the next packet is read
	t                  time.Time
}

// A linkDecoder takes the TCP segment out of a packet. It is reused for every
// packet, so that decoding allocates nothing.
type linkDecoder struct {
	eth      layers.Ethernet
	vlan     layers.Dot1Q
	sll      layers.LinuxSLL
	loopback layers.Loopback
	ip4      layers.IPv4
	ip6      layers.IPv6
	ext      layers.IPv6ExtensionSkipper
	tcp      layers.TCP
}

// decode returns the segment in p.
//
// Errors: errNotTCP, errFragment, errLink.
func (d *linkDecoder) decode(p packet) (segment, error) {
	kind, data, err := d.network(p)
	if err != nil {
		return segment{}, err
	}
	s := segment{t: p.t}
	var src, dst netip.Addr
	switch kind {
	case layers.LayerTypeIPv4:
		src, dst, data, err = d.v4(data)
	case layers.LayerTypeIPv6:
		src, dst, data, err = d.v6(data)
	default:
		return s, errNotTCP
	}
	if err != nil {
		return s, err
	}
	d.tcp.Payload = nil
	if err := d.tcp.DecodeFromBytes(data, gopacket.NilDecodeFeedback); err != nil && d.tcp.Payload == nil {
		return s, errNotTCP // malformed options are none of our business
	}
	s.src, s.dst = netip.AddrPortFrom(src, uint16(d.tcp.SrcPort)), netip.AddrPortFrom(dst, uint16(d.tcp.DstPort))
	s.seq, s.data = d.tcp.Seq, d.tcp.Payload
	s.syn, s.fin, s.rst, s.ack = d.tcp.SYN, d.tcp.FIN, d.tcp.RST, d.tcp.ACK
	return s, nil
}

// network takes the link layer off.
func (d *linkDecoder) network(p packet) (gopacket.LayerType, []byte, error) {
	var kind gopacket.LayerType
	var data []byte
	var err error
	switch p.link {
	case linkEthernet:
		err = d.eth.DecodeFromBytes(p.data, gopacket.NilDecodeFeedback)
		kind, data = d.eth.NextLayerType(), d.eth.Payload
	case linkSLL:
		err = d.sll.DecodeFromBytes(p.data, gopacket.NilDecodeFeedback)
		kind, data = d.sll.NextLayerType(), d.sll.Payload
	case linkSLL2: // protocol(2) reserved(2) interface(4) ARP type(2) packet type(1) address length(1) address(8)
		if len(p.data) < 20 {
			return 0, nil, errNotTCP
		}
		kind, data = layers.EthernetType(binary.BigEndian.Uint16(p.data)).LayerType(), p.data[20:]
	case linkNull, linkLoop:
		err = d.loopback.DecodeFromBytes(p.data, gopacket.NilDecodeFeedback)
		kind, data = byVersion(d.loopback.Payload), d.loopback.Payload
	case linkRaw, linkRawBSD, linkRawOpen, linkIPv4, linkIPv6:
		kind, data = byVersion(p.data), p.data
	default:
		return 0, nil, errLink
	}
	for range 2 { // a tag within a tag
		if err != nil || kind != layers.LayerTypeDot1Q {
			break
		}
		err = d.vlan.DecodeFromBytes(data, gopacket.NilDecodeFeedback)
		kind, data = d.vlan.NextLayerType(), d.vlan.Payload
	}
	if err != nil {
		return 0, nil, errNotTCP
	}
	return kind, data, nil
}

func byVersion(p []byte) gopacket.LayerType {
	switch {
	case len(p) > 0 && p[0]>>4 == 4:
		return layers.LayerTypeIPv4
	case len(p) > 0 && p[0]>>4 == 6:
		return layers.LayerTypeIPv6
	}
	return gopacket.LayerTypeZero
}

func (d *linkDecoder) v4(data []byte) (src, dst netip.Addr, rest []byte, err error) {
	if err := d.ip4.DecodeFromBytes(data, gopacket.NilDecodeFeedback); err != nil || d.ip4.Protocol != layers.IPProtocolTCP {
		return src, dst, nil, errNotTCP
	}
	if d.ip4.FragOffset != 0 || d.ip4.Flags&layers.IPv4MoreFragments != 0 {
		return src, dst, nil, errFragment
	}
	return netip.AddrFrom4([4]byte(d.ip4.SrcIP)), netip.AddrFrom4([4]byte(d.ip4.DstIP)), d.ip4.Payload, nil
}

func (d *linkDecoder) v6(data []byte) (src, dst netip.Addr, rest []byte, err error) {
	if err := d.ip6.DecodeFromBytes(data, gopacket.NilDecodeFeedback); err != nil {
		return src, dst, nil, errNotTCP
	}
	src, dst = netip.AddrFrom16([16]byte(d.ip6.SrcIP)), netip.AddrFrom16([16]byte(d.ip6.DstIP))
	kind, rest := d.ip6.NextLayerType(), d.ip6.Payload
	for range 8 {
		switch {
		case kind == layers.LayerTypeTCP:
			return src, dst, rest, nil
		case kind == layers.LayerTypeIPv6Fragment:
			return src, dst, nil, errFragment
		case !d.ext.CanDecode().Contains(kind):
			return src, dst, nil, errNotTCP
		}
		if err := d.ext.DecodeFromBytes(rest, gopacket.NilDecodeFeedback); err != nil {
			return src, dst, nil, errNotTCP
		}
		kind, rest = d.ext.NextLayerType(), d.ext.Payload
	}
	return src, dst, nil, errNotTCP
}
