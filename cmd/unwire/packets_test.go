package main

import (
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// packetsWith is a pcapng file of a request in clear that carries a token.
func packetsWith(t *testing.T, token string) []byte {
	var out bytes.Buffer
	w, err := pcapgo.NewNgWriter(&out, layers.LinkTypeRaw)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_700_000_000, 0)
	client, server := net.IPv4(10, 0, 0, 1), net.IPv4(10, 0, 0, 2)
	send := func(up bool, h layers.TCP, payload string) {
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: client, DstIP: server}
		h.SrcPort, h.DstPort, h.ACK = 40000, 80, true
		if !up {
			ip.SrcIP, ip.DstIP = server, client
			h.SrcPort, h.DstPort = 80, 40000
		}
		buf := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true}, ip, &h, gopacket.Payload(payload)); err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Millisecond)
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(buf.Bytes()), Length: len(buf.Bytes())}, buf.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	request := fmt.Sprintf("POST /a?access_token=%s HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", token, token, len(token), token)
	answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nSet-Cookie: s=%s\r\nContent-Length: 2\r\n\r\nok", token)
	send(true, layers.TCP{Seq: 100, SYN: true}, "")
	send(false, layers.TCP{Seq: 200, SYN: true}, "")
	send(true, layers.TCP{Seq: 101}, request)
	send(false, layers.TCP{Seq: 201}, answer)
	send(true, layers.TCP{Seq: 101 + uint32(len(request)), FIN: true}, "")
	send(false, layers.TCP{Seq: 201 + uint32(len(answer)), FIN: true}, "")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
