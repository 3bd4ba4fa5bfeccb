# A TLS client of a proxy that ends without close_notify:
# tls_client.py PROXY SERVER CA.pem ACTION WORDS. It closes when it has read what the action
# tells it to.
import socket
import ssl
import sys

proxy, server, ca, action, words = sys.argv[1:]
host, port = proxy.split(":")
conn = socket.create_connection((host, int(port)))
conn.sendall(f"CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n".encode())
assert b" 200 " in conn.recv(4096)
context = ssl.create_default_context(cafile=ca)
if "old" in action:
    context.maximum_version = ssl.TLSVersion.TLSv1_2
tls = context.wrap_socket(conn, server_hostname=server.split(":")[0])
for line in words.encode().decode("unicode_escape").split("|"):
    tls.sendall(line.encode())
    if "read" in action:
        assert tls.recv(4096)
tls.close()
