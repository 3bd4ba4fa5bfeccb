package packet

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// A linkType is the protocol of a packet's first header, as numbered in pcap files. gopacket's type is too small
// for newer numbers.
//
// Source: https://www.tcpdump.org/linktypes.html
type linkType uint16

const (
	// linkNull and the others are named as in the registry, without LINKTYPE_.
	linkNull     linkType = 0
	linkEthernet linkType = 1
	// linkRawBSD is raw IP on some BSD systems.
	linkRawBSD  linkType = 12
	linkRawOpen linkType = 14
	linkRaw     linkType = 101
	linkLoop    linkType = 108
	linkSLL     linkType = 113
	linkIPv4    linkType = 228
	linkIPv6    linkType = 229
	linkSLL2    linkType = 276
)

// Errors that give the reason why a packet is skipped.
var (
	errNotTCP   = errors.New("the packet is not TCP over IP")
	errFragment = errors.New("other fragments of the IP packet are missing")
	errQUIC     = errors.New("the packet is QUIC")
	errLinkType = errors.New("unwire does not support the link type")
)

// A layerDecoder extracts the TCP segment from a captured packet. Its buffers are reused for all packets, so
// decoding does not allocate.
type layerDecoder struct {
	// eth is a reused buffer for a decoded Ethernet header.
	eth layers.Ethernet
	// vlan is a reused buffer for a decoded VLAN tag (IEEE 802.1Q).
	vlan layers.Dot1Q
	// loopback is a reused buffer for a decoded header of BSD loopback capture.
	loopback layers.Loopback
	// ip4 is a reused buffer for a decoded IPv4 header.
	ip4 layers.IPv4
	// ip6 is a reused buffer for a decoded IPv6 header.
	ip6 layers.IPv6
	// ext is a reused buffer for decoded IPv6 extension headers.
	ext layers.IPv6ExtensionSkipper
	// tcp is a reused buffer for a decoded TCP header.
	tcp layers.TCP
	// defrag reassembles fragmented IP packets.
	defrag defragmenter
}

// decode returns the TCP segment in the captured packet p.
//
// Errors: errNotTCP, errQUIC, errFragment, errLinkType.
func (d *layerDecoder) decode(p frame) (Segment, error) {
	kind, data, err := d.decodeLink(p)
	if err != nil {
		return Segment{}, err
	}
	s := Segment{Time: p.t}
	var ip ipPayload
	switch kind {
	case layers.LayerTypeIPv4:
		ip, err = d.decodeIPv4(data, p.t)
	case layers.LayerTypeIPv6:
		ip, err = d.decodeIPv6(data, p.t)
	default:
		return s, errNotTCP
	}
	switch {
	case err != nil:
		return s, err
	case ip.protocol == layers.IPProtocolUDP && isQUIC(ip.data):
		return s, errQUIC
	case ip.protocol != layers.IPProtocolTCP:
		return s, errNotTCP
	}
	d.tcp.Payload = nil
	if err := d.tcp.DecodeFromBytes(ip.data, gopacket.NilDecodeFeedback); err != nil && d.tcp.Payload == nil {
		// Malformed options are tolerated.
		return s, errNotTCP
	}
	s.Src, s.Dst = netip.AddrPortFrom(ip.src, uint16(d.tcp.SrcPort)), netip.AddrPortFrom(ip.dst, uint16(d.tcp.DstPort))
	s.Seq, s.Data = d.tcp.Seq, d.tcp.Payload
	s.SYN, s.FIN, s.RST, s.ACK = d.tcp.SYN, d.tcp.FIN, d.tcp.RST, d.tcp.ACK
	return s, nil
}

// decodeLink decodes the link-layer header of p. It returns the type of the next layer, such as IPv4, and its
// bytes.
func (d *layerDecoder) decodeLink(p frame) (gopacket.LayerType, []byte, error) {
	var kind gopacket.LayerType
	var data []byte
	var err error
	switch p.link {
	case linkEthernet:
		err = d.eth.DecodeFromBytes(p.data, gopacket.NilDecodeFeedback)
		kind, data = d.eth.NextLayerType(), d.eth.Payload
	case linkSLL:
		// packet type(2) ARP type(2) address length(2) address(8) protocol(2); gopacket's decoder panics if the
		// address is longer than its place.
		if len(p.data) < 16 {
			return 0, nil, errNotTCP
		}
		kind, data = layers.EthernetType(binary.BigEndian.Uint16(p.data[14:])).LayerType(), p.data[16:]
	case linkSLL2:
		// protocol(2) reserved(2) interface(4) ARP type(2) packet type(1) address length(1) address(8)
		if len(p.data) < 20 {
			return 0, nil, errNotTCP
		}
		kind, data = layers.EthernetType(binary.BigEndian.Uint16(p.data)).LayerType(), p.data[20:]
	case linkNull, linkLoop:
		err = d.loopback.DecodeFromBytes(p.data, gopacket.NilDecodeFeedback)
		kind, data = ipVersion(d.loopback.Payload), d.loopback.Payload
	case linkRaw, linkRawBSD, linkRawOpen, linkIPv4, linkIPv6:
		kind, data = ipVersion(p.data), p.data
	default:
		return 0, nil, errLinkType
	}
	// A VLAN tag may be inside another one.
	for range 2 {
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

// ipVersion returns the layer type IPv4 or IPv6 according to the first byte of an IP packet.
func ipVersion(p []byte) gopacket.LayerType {
	switch {
	case len(p) > 0 && p[0]>>4 == 4:
		return layers.LayerTypeIPv4
	case len(p) > 0 && p[0]>>4 == 6:
		return layers.LayerTypeIPv6
	}
	return gopacket.LayerTypeZero
}

// An ipPayload is the payload of an IP packet, with its addresses.
type ipPayload struct {
	// src is the IP address of the sender.
	src netip.Addr
	// dst is the IP address of the receiver.
	dst netip.Addr
	// protocol is the IP protocol number of the payload, such as TCP.
	protocol layers.IPProtocol
	// data is the payload of the IP packet, valid only until the next packet is read.
	data []byte
}

// decodeIPv4 returns the payload of an IPv4 packet that was captured at time t. A fragment is an error unless
// it completes its packet.
func (d *layerDecoder) decodeIPv4(data []byte, t time.Time) (ipPayload, error) {
	if err := d.ip4.DecodeFromBytes(data, gopacket.NilDecodeFeedback); err != nil {
		return ipPayload{}, errNotTCP
	}
	ip := ipPayload{
		src: netip.AddrFrom4([4]byte(d.ip4.SrcIP)), dst: netip.AddrFrom4([4]byte(d.ip4.DstIP)),
		protocol: d.ip4.Protocol, data: d.ip4.Payload,
	}
	more := d.ip4.Flags&layers.IPv4MoreFragments != 0
	if d.ip4.FragOffset == 0 && !more {
		return ip, nil
	}
	return d.defragment(ip, uint32(d.ip4.Id), int(d.ip4.FragOffset)*8, more, t)
}

// defragment adds a fragment of the IP packet with this id, and returns the packet's payload if it is now
// complete; otherwise errFragment. offset is in bytes; more means that fragments follow.
func (d *layerDecoder) defragment(ip ipPayload, id uint32, offset int, more bool, t time.Time) (ipPayload, error) {
	key := datagramKey{ip.src, ip.dst, id, uint8(ip.protocol)}
	data, ok := d.defrag.addFragment(fragment{key, offset, more, ip.data, t})
	if !ok {
		return ip, errFragment
	}
	ip.data = data
	return ip, nil
}

// decodeIPv6 returns the payload of an IPv6 packet that was captured at time t. A fragment is an error unless
// it completes its packet.
func (d *layerDecoder) decodeIPv6(data []byte, t time.Time) (ipPayload, error) {
	if err := d.ip6.DecodeFromBytes(data, gopacket.NilDecodeFeedback); err != nil {
		return ipPayload{}, errNotTCP
	}
	ip := ipPayload{src: netip.AddrFrom16([16]byte(d.ip6.SrcIP)), dst: netip.AddrFrom16([16]byte(d.ip6.DstIP))}

	// Skip extension headers, of which there are only a few.
	kind, protocol, rest := d.ip6.NextLayerType(), d.ip6.NextHeader, d.ip6.Payload
	for range 8 {
		switch {
		case kind == layers.LayerTypeTCP || kind == layers.LayerTypeUDP:
			ip.protocol, ip.data = protocol, rest
			return ip, nil
		case kind == layers.LayerTypeIPv6Fragment:
			// next(1) reserved(1) offset(13 bits) reserved(2) more(1) id(4)
			if len(rest) < 8 {
				return ip, errNotTCP
			}
			ip.protocol, ip.data = layers.IPProtocol(rest[0]), rest[8:]
			at := int(binary.BigEndian.Uint16(rest[2:]))
			return d.defragment(ip, binary.BigEndian.Uint32(rest[4:]), at&^7, at&1 != 0, t)
		case !d.ext.CanDecode().Contains(kind):
			return ip, errNotTCP
		}
		if err := d.ext.DecodeFromBytes(rest, gopacket.NilDecodeFeedback); err != nil {
			return ip, errNotTCP
		}
		kind, protocol, rest = d.ext.NextLayerType(), d.ext.NextHeader, d.ext.Payload
	}
	return ip, errNotTCP
}

// isQUIC reports whether a UDP datagram looks like QUIC: a long header with a known version, or any QUIC header
// on port 443.
//
// Source: RFC 8999, RFC 9369.
func isQUIC(udp []byte) bool {
	const header, https, fixed, long = 8, 443, 0x40, 0x80
	if len(udp) < header+5 || udp[header]&fixed == 0 {
		return false
	}
	if binary.BigEndian.Uint16(udp) == https || binary.BigEndian.Uint16(udp[2:]) == https {
		return true
	}
	version := binary.BigEndian.Uint32(udp[header+1:])
	return udp[header]&long != 0 && (version == 1 || version == 0x6b3343cf)
}
