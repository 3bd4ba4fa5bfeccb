// Command server is the shop of README.md's examples: gRPC, gRPC-Web and
// Connect over TLS, with a certificate of a private authority.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"unwire/cmd/unwire/testdata/shop"
	"unwire/cmd/unwire/testdata/shop/shopconnect"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: server HOST:PORT CA-FILE")
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(address, caFile string) error {
	ca, leaf, err := certificates()
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	// The file says that the server listens.
	if err := os.WriteFile(caFile, ca, 0o644); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(shopconnect.NewOrdersHandler(&orders{}))
	server := &http.Server{
		Handler:           mux,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{leaf}, NextProtos: []string{"h2", "http/1.1"}},
		ReadHeaderTimeout: time.Minute,
	}
	fmt.Println("listening on", ln.Addr())
	return server.ServeTLS(ln, "", "")
}

// certificates makes an authority, in PEM, and its certificate for loopback.
func certificates() (authority []byte, leaf tls.Certificate, err error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, leaf, err
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, leaf, err
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "Shop's private CA"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	ca, err := x509.CreateCertificate(rand.Reader, &template, &template, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, leaf, err
	}
	parent := template
	template = x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "shop"},
		NotBefore: parent.NotBefore, NotAfter: parent.NotAfter,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &parent, &leafKey.PublicKey, caKey)
	if err != nil {
		return nil, leaf, err
	}
	authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca})
	return authority, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: leafKey}, nil
}

// orders implements shopconnect.OrdersHandler.
type orders struct{}

// PlaceOrder gives the same order the same ID, as shops do that must not sell twice.
func (*orders) PlaceOrder(_ context.Context, req *connect.Request[shop.PlaceOrderRequest]) (*connect.Response[shop.PlaceOrderResponse], error) {
	if len(req.Msg.Items) == 0 {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("an order needs at least one item"))
	}
	var cents int64
	for _, item := range req.Msg.Items {
		cents += int64(item.Quantity) * (item.UnitPrice.GetUnits()*100 + int64(item.UnitPrice.GetCents()))
	}
	order, err := proto.MarshalOptions{Deterministic: true}.Marshal(req.Msg)
	if err != nil {
		return nil, err
	}
	answer := &shop.PlaceOrderResponse{
		OrderId: fmt.Sprintf("order-%08x", crc32.ChecksumIEEE(order)),
		Total:   &shop.Money{Units: cents / 100, Cents: int32(cents % 100)},
	}
	if req.Msg.Coupon != "" {
		answer.Warnings = append(answer.Warnings, "coupon "+req.Msg.Coupon+" has expired")
	}
	return connect.NewResponse(answer), nil
}

func (*orders) Track(_ context.Context, req *connect.Request[shop.TrackRequest], stream *connect.ServerStream[shop.TrackResponse]) error {
	updates := []*shop.TrackResponse{
		{Status: shop.Status_STATUS_PACKED, Note: "packed in Porto"},
		{Status: shop.Status_STATUS_SHIPPED, Note: "handed to the carrier"},
		{Status: shop.Status_STATUS_DELIVERED, Note: req.Msg.OrderId + " is at the door"},
	}
	for _, update := range updates {
		update.At = timestamppb.Now()
		if err := stream.Send(update); err != nil {
			return err
		}
	}
	return nil
}
