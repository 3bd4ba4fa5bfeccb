"""Subscribes to a topic in TLS, as MQTT 3.1.1 does, and publishes to it: mqtt.py HOST:PORT"""
import socket
import ssl
import sys

host, port = sys.argv[1].split(':')


def text(s):
    return len(s).to_bytes(2, 'big') + s.encode()


def packet(kind, body):
    return bytes([kind, len(body)]) + body


def read(f):
    kind, size = f.read(2)
    return kind, f.read(size)


with socket.create_connection((host, int(port))) as plain:
    with ssl.create_default_context().wrap_socket(plain, server_hostname=host) as s:
        f = s.makefile('rb')
        s.sendall(packet(0x10, text('MQTT') + b'\x04\x02\x00\x3c' + text('client')))
        print(read(f))
        s.sendall(packet(0x82, b'\x00\x01' + text('a/topic') + b'\x00'))
        print(read(f))
        n = 0
        for i in range(50):
            message = packet(0x30, text('a/topic') + f'message {i}'.encode())
            s.sendall(message)
            kind, body = read(f)
            n += packet(kind, body) == message
        s.sendall(packet(0xC0, b''))
        print(read(f), n, 'messages')
        s.sendall(packet(0xE0, b''))
