# A TLS server that answers each line, or each section of a request, and ends without
# close_notify: tls_server.py PAIR.pem ANSWER. It prints its port, and ends with its input.
import socket
import ssl
import sys
import threading

pair, answer = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(pair)
listener = socket.create_server(("127.0.0.1", 0))


def serve(conn):
    with context.wrap_socket(conn, server_side=True) as tls:
        while data := tls.recv(65536):
            if answer != "-":
                tls.sendall(answer.encode() or data)
            if answer.startswith("HTTP/1.0"):
                return


def accept():
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


threading.Thread(target=accept, daemon=True).start()
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
