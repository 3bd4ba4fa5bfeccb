// Places an order at the shop of README.md's examples and tracks it, with
// grpc-js. The server's address is in SHOP.
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const definitions = loader.loadSync(new URL("shop.proto", import.meta.url).pathname);
const { shop } = grpc.loadPackageDefinition(definitions);
const orders = new shop.v1.Orders(process.env.SHOP ?? "127.0.0.1:9440", grpc.credentials.createSsl());

const place = (n) => new Promise((resolve, reject) => orders.placeOrder({
  customerId: `c-${1042 + n}`,
  items: [
    { sku: "TEA-OOLONG-100", quantity: 2 + n, unitPrice: { units: 12, cents: 50 }, tags: ["tea", "loose leaf"] },
    { sku: "POT-CAST-IRON", quantity: 1, unitPrice: { units: 64 }, tags: ["teaware"] },
  ],
  shipTo: { name: "Ada Example", street: `${12 + n} Harbour Road`, city: "Lisbon", postalCode: "1100-148", country: "PT", latitude: 38.7077, longitude: -9.1365 - n / 10 },
  currency: 1 + n % 2,
  coupon: n % 2 ? "" : "SPRING",
  gift: n % 3 == 0,
}, (error, placed) => error ? reject(error) : resolve(placed)));

for (let n = 0; n < 3; n++) {
  const placed = await place(n);
  console.log("placed", placed.orderId);
  for await (const update of orders.track({ orderId: placed.orderId })) console.log(update.status, update.note);
}
orders.close();
