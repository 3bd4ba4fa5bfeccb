package pcap

import (
	"context"
	"io"
	"time"

	"unwire/captures/pcap/packet"
)

// maxWithoutKeys limits the number of connections whose packets are read a second time because their TLS keys
// were logged too late.
const maxWithoutKeys = 4096

// A connectionWithoutKeys is a connection that stopped waiting for its TLS keys. random is the client random,
// by which a key log identifies the TLS session.
type connectionWithoutKeys struct {
	// id identifies the connection, so that its packets can be found when the file is read again.
	id connID
	// random is the client random, by which a key log identifies the TLS session.
	random [32]byte
	// report is the description of the connection for the user, which is delivered if the keys are not logged
	// later either.
	report Connection
}

// A connID identifies a connection in a packet file by its addresses and start time.
type connID struct {
	// addrs are the addresses of the two ends.
	addrs pair
	// started is the time of the connection's first packet.
	started time.Time
}

// deferWithoutKeys postpones the report of a connection that was not decrypted because its keys may still be
// logged. It returns false if the connection has to be reported now.
func (im *importer) deferWithoutKeys(c *conn) bool {
	if im.options.Live == nil || im.options.Live.Again == nil || !c.proceededWithoutKeys || len(im.withoutKeys) == maxWithoutKeys {
		return false
	}
	im.withoutKeys = append(im.withoutKeys, connectionWithoutKeys{connID{c.addrs, c.report.Started}, c.unknownClientRandom, c.report})
	return true
}

// importWithLateKeys reads the packets again for connections whose keys were logged too late. It reports the
// other deferred connections.
func (im *importer) importWithLateKeys(ctx context.Context) error {
	only := map[connID]int64{}
	for _, k := range im.withoutKeys {
		if im.options.Keys.sessions[k.random] == nil {
			im.countReport(k.report)
			continue
		}
		only[k.id] = k.report.Number
	}
	im.withoutKeys = nil
	if len(only) == 0 {
		return nil
	}
	r, err := im.options.Live.Again()
	if err != nil {
		return err
	}

	// The second pass is not live: it reads to the end of the file, and only these connections.
	again := &importer{options: im.options, conns: map[pair]*conn{}, budget: &budget{available: maxBuffered}, only: only}
	again.options.Live = nil
	packets, err := packet.NewReader(struct{ io.Reader }{r}, nil)
	if err == nil {
		err = again.read(ctx, packets)
	}
	again.finishAll()
	im.summary.Exchanges += again.summary.Exchanges
	im.summary.Undecoded += again.summary.Undecoded
	if again.recordingError != nil {
		return again.recordingError
	}
	return err
}
