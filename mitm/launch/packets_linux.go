package launch

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// packetSocket is the kind of the packet socket in message.Sockets.
	packetSocket = "packets"

	// blockBytes and blockCount are the size and the number of the blocks of the ring buffer.
	blockBytes = 1 << 20
	blockCount = 64

	// retireAfter is the time after which the kernel hands over a block of packets that is not full.
	retireAfter = 50 * time.Millisecond
)

// Offsets in a block of the ring buffer: version(4) private(4) status(4) packets(4) offset of the first(4) …;
// and in a packet: tpacket3_hdr, aligned to 16 bytes, sockaddr_ll, and the Ethernet frame.
const (
	blockStatusAt  = 8
	blockPacketsAt = 12
	blockFirstAt   = 16
	linkAddressAt  = (unix.SizeofTpacket3Hdr + 15) &^ 15
	packetTypeAt   = linkAddressAt + 10
	minPacket      = linkAddressAt + unix.SizeofSockaddrLinklayer
)

// openPackets opens a packet socket with a ring buffer (TPACKET_V3) for the loopback device of the namespace.
// All addresses of the namespace are local, so every packet passes this device once.
func openPackets() (*os.File, error) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return nil, fmt.Errorf("the packet socket cannot be opened: %w", err)
	}
	s, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("the packet socket cannot be opened: %w", err)
	}
	if err := bindPackets(s, lo.Index); err != nil {
		_ = unix.Close(s)
		return nil, fmt.Errorf("the packet socket cannot be opened: %w", err)
	}
	return os.NewFile(uintptr(s), packetSocket), nil
}

// bindPackets starts the delivery of a device's packets to the packet socket s.
func bindPackets(s, device int) error {
	if err := unix.SetsockoptInt(s, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return err
	}
	// Before Linux 4.20 this fails, and the reader skips outgoing packets itself.
	_ = unix.SetsockoptInt(s, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	err := unix.SetsockoptTpacketReq3(s, unix.SOL_PACKET, unix.PACKET_RX_RING, &unix.TpacketReq3{
		Block_size: blockBytes, Block_nr: blockCount,
		Frame_size: 2048, Frame_nr: blockBytes / 2048 * blockCount,
		Retire_blk_tov: uint32(retireAfter.Milliseconds()),
	})
	if err != nil {
		return err
	}
	all := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
	return unix.Bind(s, &unix.SockaddrLinklayer{Protocol: all, Ifindex: device})
}

// A packetReader reads the packets of a command from the ring buffer of a packet socket.
type packetReader struct {
	// packet is called for each packet; see Passive.Packet.
	packet func(t time.Time, data []byte, length int)
	// payload is the number of bytes of TCP payload that were read so far.
	payload atomic.Int64

	// socket is the file descriptor of the packet socket.
	socket int
	// ring is the memory of the socket's ring buffer.
	ring []byte

	// stop ends the reading when it is closed.
	stop chan struct{}
	// done is closed when the reading has ended.
	done chan struct{}
	// counts are the numbers of packets so far.
	counts Packets
	// last is the time of the last recorded packet.
	last time.Time
}

// start starts reading the ring buffer of the packet socket f. It duplicates the file, so the caller may close
// f.
func (p *packetReader) start(f *os.File) error {
	s, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the packet socket cannot be opened: %w", err)
	}
	ring, err := unix.Mmap(s, 0, blockBytes*blockCount, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		_ = unix.Close(s)
		return fmt.Errorf("the ring buffer for packets cannot be created: %w", err)
	}
	p.socket, p.ring, p.stop, p.done = s, ring, make(chan struct{}), make(chan struct{})
	go p.readRing()
	return nil
}

// finish reads the packets that were recorded until now, stops, and returns the counts.
func (p *packetReader) finish() Packets {
	if p.done == nil {
		// It was never started.
		return p.counts
	}
	// Wait until the kernel has handed over the last block.
	time.Sleep(2 * retireAfter)
	close(p.stop)
	<-p.done
	if stats, err := unix.GetsockoptTpacketStatsV3(p.socket, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		p.counts.Dropped = int64(stats.Drops)
	}
	_ = unix.Munmap(p.ring)
	_ = unix.Close(p.socket)
	return p.counts
}

// readRing reads blocks of the ring buffer until stop is closed.
func (p *packetReader) readRing() {
	defer close(p.done)
	for n := 0; ; n = (n + 1) % blockCount {
		block := p.ring[n*blockBytes:][:blockBytes]
		// The pointer is aligned, because a block begins with a page.
		status := (*uint32)(unsafe.Pointer(&block[blockStatusAt]))
		for atomic.LoadUint32(status)&unix.TP_STATUS_USER == 0 {
			select {
			case <-p.stop:
				return
			default:
			}
			poll := []unix.PollFd{{Fd: int32(p.socket), Events: unix.POLLIN | unix.POLLERR}}
			// If it is interrupted, the block is checked again.
			_, _ = unix.Poll(poll, int(retireAfter.Milliseconds()))
		}
		p.readBlock(block)
		atomic.StoreUint32(status, unix.TP_STATUS_KERNEL)
	}
}

// readBlock reads the packets in a block of the ring buffer. It stops at an offset outside of the block.
func (p *packetReader) readBlock(b []byte) {
	at := int(binary.NativeEndian.Uint32(b[blockFirstAt:]))
	for range binary.NativeEndian.Uint32(b[blockPacketsAt:]) {
		if at < 0 || at+minPacket > len(b) {
			return
		}
		// The pointer is aligned, because the kernel aligns to 16 bytes.
		h := (*unix.Tpacket3Hdr)(unsafe.Pointer(&b[at]))
		from, kept := at+int(h.Mac), int(h.Snaplen)
		if from+kept > len(b) {
			return
		}
		if b[at+packetTypeAt] != unix.PACKET_OUTGOING {
			p.counts.Recorded++
			if h.Snaplen < h.Len {
				p.counts.Cut++
			}
			p.payload.Add(tcpPayloadLength(b[from : from+kept]))
			// Time stamps of different processors can differ by microseconds.
			if now := time.Unix(int64(h.Sec), int64(h.Nsec)); now.After(p.last) {
				p.last = now
			}
			p.packet(p.last, b[from:from+kept], int(h.Len))
		}
		if h.Next_offset == 0 {
			return
		}
		at += int(h.Next_offset)
	}
}

// tcpPayloadLength returns the size of the TCP payload in an Ethernet frame with common headers; 0 for others.
func tcpPayloadLength(frame []byte) int64 {
	const ethernet, minTCP = 14, 20
	at := ethernet
	switch {
	case len(frame) < ethernet+20+minTCP:
		return 0
	case frame[at]>>4 == 4 && frame[at+9] == unix.IPPROTO_TCP:
		at += int(frame[at]&0x0f) * 4
	case frame[at]>>4 == 6 && frame[at+6] == unix.IPPROTO_TCP:
		at += 40
	default:
		return 0
	}
	if at+minTCP > len(frame) {
		return 0
	}
	return max(0, int64(len(frame)-at-int(frame[at+12]>>4)*4))
}
