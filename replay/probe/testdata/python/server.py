"""Serves gen.catalog.Catalog with grpcio, and code that protoc generated in a folder (the first argument).

A second argument is a folder with cert.pem and key.pem. It prints its port and that of an HTTP server that tells how
often a handler ran, and ends with its standard input.
"""

import http.server
import pathlib
import sys
import threading
from concurrent import futures

import grpc

sys.path.insert(0, sys.argv[1])
import catalog_pb2  # noqa: E402

ran = 0


def find(request, context):
    global ran
    ran += 1
    return catalog_pb2.FindReply()


class Executed(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(ran).encode())

    def log_message(self, *args):
        pass


server = grpc.server(futures.ThreadPoolExecutor(4))
# What the generated add_CatalogServicer_to_server does.
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("gen.catalog.Catalog", {
    "Find": grpc.unary_unary_rpc_method_handler(
        find, request_deserializer=catalog_pb2.FindRequest.FromString, response_serializer=catalog_pb2.FindReply.SerializeToString),
}),))
if len(sys.argv) > 2:
    pem = [pathlib.Path(sys.argv[2], name).read_bytes() for name in ("key.pem", "cert.pem")]
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([tuple(pem)]))
else:
    port = server.add_insecure_port("127.0.0.1:0")
server.start()
counter = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Executed)
threading.Thread(target=counter.serve_forever, daemon=True).start()
print(port, counter.server_address[1], flush=True)
sys.stdin.read()
server.stop(0)
