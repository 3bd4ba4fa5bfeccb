"""A client of grpcio that makes a call of each kind and prints what came back:
grpc_client.py HOST:PORT NAME"""
import queue
import sys

import grpc

address, prefix = sys.argv[1:]
SERVICE = '/unwire.test.v1.EchoService/'


def size(n):
    out = b''
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def encode(text):
    """A google.protobuf.StringValue."""
    data = text.encode()
    return b'\n' + size(len(data)) + data if data else b''


def decode(message):
    if not message:
        return ''
    at = 1
    while message[at] > 127:
        at += 1
    return message[at + 1:].decode()


def call(kind, method, name, f):
    c = getattr(channel, kind)(SERVICE + method, request_serializer=encode, response_deserializer=decode)
    try:
        f(c, (('x-case', prefix + '/' + name),))
    except grpc.RpcError as e:
        meta = sorted(m for m in e.trailing_metadata() if m[0] in ('x-meta', 'x-tail', 'grpc-status-details-bin'))
        print(f'{name}: error {e.code()} {e.details()} {meta}')
    print('end of', name)


def unary(value):
    def run(c, meta):
        answer, info = c.with_call(value, metadata=meta)
        print(len(answer), answer[:40], [m for m in info.initial_metadata() if m[0] == 'x-head'], [m for m in info.trailing_metadata() if m[0] == 'x-tail'])
    return run


def download(c, meta):
    for m in c('d', metadata=meta):
        print('Download:', m)


def upload(c, meta):
    print('Upload:', c(iter(['0', '1', '2']), metadata=meta))


def chat(c, meta):
    out = queue.SimpleQueue()
    out.put('0')
    n = 0
    for m in c(iter(out.get, None), metadata=meta):
        print('Chat:', m)
        n += 1
        out.put(str(n) if n < 100 else None)


with grpc.secure_channel(address, grpc.ssl_channel_credentials()) as channel:
    call('unary_unary', 'Unary', 'Unary', unary('hello'))
    call('unary_unary', 'Unary', 'Big', unary('big ' * 100000))
    call('unary_unary', 'Fail', 'Fail', unary('x'))
    call('unary_stream', 'Download', 'Download', download)
    call('unary_stream', 'FailLater', 'FailLater', download)
    call('stream_unary', 'Upload', 'Upload', upload)
    call('stream_stream', 'Chat', 'Chat', chat)
