// Command client places an order at the shop of README.md's examples and tracks
// it, with grpc-go and the system's certificate authorities. The server's address is in
// SHOP.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/timestamppb"

	"unwire/cmd/unwire/testdata/shop"
)

func main() {
	log.SetFlags(0)
	address := os.Getenv("SHOP")
	if address == "" {
		address = "127.0.0.1:9440"
	}
	if err := run(address); err != nil {
		log.Fatal(err)
	}
}

func run(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{})))
	if err != nil {
		return err
	}
	defer conn.Close()

	orders := shop.NewOrdersClient(conn)
	placed, err := orders.PlaceOrder(ctx, &shop.PlaceOrderRequest{
		CustomerId: "c-1042",
		Items: []*shop.Item{
			{Sku: "TEA-OOLONG-100", Quantity: 2, UnitPrice: &shop.Money{Units: 12, Cents: 50}, Tags: []string{"tea", "loose leaf"}},
			{Sku: "POT-CAST-IRON", Quantity: 1, UnitPrice: &shop.Money{Units: 64}, Tags: []string{"teaware"}},
		},
		ShipTo: &shop.Address{
			Name: "Ada Example", Street: "12 Harbour Road", City: "Lisbon", PostalCode: "1100-148", Country: "PT",
			Latitude: 38.7077, Longitude: -9.1365,
		},
		Currency:  shop.Currency_CURRENCY_EUR,
		Coupon:    "SPRING",
		Gift:      true,
		DeliverBy: timestamppb.New(time.Date(2026, 12, 18, 12, 0, 0, 0, time.UTC)),
	})
	if err != nil {
		return err
	}
	fmt.Println("placed", placed.OrderId)

	stream, err := orders.Track(ctx, &shop.TrackRequest{OrderId: placed.OrderId})
	if err != nil {
		return err
	}
	for {
		update, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Println(update.Status, update.Note)
	}
}
