# SPDX-License-Identifier: Apache-2.0
"""grpc_peer.py serve ADDRESS CRT KEY LOG | call TARGET KIND [WORD...] - gRPC without protobuf

Messages are bytes as they are. The server echoes; it writes the metadata that
each call brought to LOG.
"""
import json
import os
import sys
import threading
import time
from concurrent import futures

import grpc

ME = dict(request_deserializer=None, response_serializer=None)


def serve(address, crt, key, log):
    lock = threading.Lock()

    def note(method, context):
        with lock, open(log, "a") as out:
            out.write(json.dumps({"method": method, "metadata": dict(
                (k, v if isinstance(v, str) else v.hex()) for k, v in context.invocation_metadata())}) + "\n")

    def credential(context):
        return dict(context.invocation_metadata())["authorization"].encode()

    def unary(request, context):
        note("unary", context)
        context.set_trailing_metadata((("x-sum", str(len(request))),
                                       ("x-auth", dict(context.invocation_metadata()).get("authorization", ""))))
        if request == b"fail":
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "as you wished")
        if request == b"slow":
            time.sleep(3)
        if request == b"packed":
            context.set_compression(grpc.Compression.Gzip)
            return b"x" * 2000 + credential(context) + b"y" * 2000
        return request

    def out_stream(request, context):
        note("out", context)
        for i in range(int(request)):
            yield b"%d" % i
            time.sleep(0.05)

    def in_stream(requests, context):
        note("in", context)
        return b"%d" % sum(len(r) for r in requests)

    def both(requests, context):
        note("both", context)
        for r in requests:
            yield b"re:" + r + (credential(context) if r == b"secret " else b"")

    handlers = {
        "Unary": grpc.unary_unary_rpc_method_handler(unary, **ME),
        "Out": grpc.unary_stream_rpc_method_handler(out_stream, **ME),
        "In": grpc.stream_unary_rpc_method_handler(in_stream, **ME),
        "Both": grpc.stream_stream_rpc_method_handler(both, **ME),
    }
    server = grpc.server(futures.ThreadPoolExecutor(32), options=[
        ("grpc.max_receive_message_length", 64 << 20)])
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("lab.Echo", handlers)])
    creds = grpc.ssl_server_credentials([(open(key, "rb").read(), open(crt, "rb").read())])
    assert server.add_secure_port(address, creds)
    server.start()
    print("ready", flush=True)
    server.wait_for_termination()


def call(target, kind):
    root = open(os.environ["SSL_CERT_FILE"], "rb").read()
    channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(root), options=[
        ("grpc.max_receive_message_length", 64 << 20), ("grpc.enable_http_proxy", 0)])
    me = dict(request_serializer=None, response_deserializer=None)
    unary = channel.unary_unary("/lab.Echo/Unary", **me)
    if kind == "unary":
        reply, rpc = unary.with_call(b"hello", metadata=[("x-mine", "1"), ("x-bin-bin", b"\x00\xff")],
                                     timeout=10)
        print(reply.decode(), dict(rpc.trailing_metadata()))
    elif kind == "fail":
        try:
            unary(b"fail", timeout=10)
        except grpc.RpcError as e:
            print(e.code().name, e.details())
    elif kind == "deadline":
        start = time.monotonic()
        try:
            unary(b"slow", timeout=1)
        except grpc.RpcError as e:
            print(e.code().name, time.monotonic() - start < 2)
    elif kind == "cancel":
        stream = channel.unary_stream("/lab.Echo/Out", **me)(b"1000", timeout=30)
        next(stream)
        stream.cancel()
        print(stream.code().name)
    elif kind == "out":
        marks = [time.monotonic() for _ in channel.unary_stream("/lab.Echo/Out", **me)(b"6", timeout=10)]
        print(len(marks), marks[-1] - marks[0] > 0.15)
    elif kind == "in":
        print(channel.stream_unary("/lab.Echo/In", **me)(
            (b"x" * 1000 for _ in range(100)), timeout=10).decode())
    elif kind == "both":
        sent, got = [], []

        def ask():
            for i in range(20):
                sent.append(i)
                yield b"%d" % i
                while len(got) <= i:  # strictly in turn: nothing may be held back
                    time.sleep(0.001)
        for reply in channel.stream_stream("/lab.Echo/Both", **me)(ask(), timeout=10):
            got.append(reply)
        print(len(got), got[-1].decode())
    elif kind == "turns":
        said, got = sys.argv[4:], []

        def say():
            for i, word in enumerate(said):
                yield word.encode()
                while len(got) <= i:  # the answer to it, whole, before the next
                    time.sleep(0.001)
        for reply in channel.stream_stream("/lab.Echo/Both", **me)(say(), timeout=5):
            got.append(reply.decode())
        print(json.dumps(got))
    elif kind == "packed":
        try:
            print(unary(b"packed", timeout=5).decode())
        except grpc.RpcError as e:
            print(e.code().name)
    elif kind == "large":
        data = os.urandom(20 << 20)
        print(unary(data, timeout=30) == data)
    elif kind == "denied":
        try:
            unary(b"x", timeout=10)
        except grpc.RpcError as e:
            print(e.code().name, e.details())


if sys.argv[1] == "serve":
    serve(*sys.argv[2:6])
else:
    call(sys.argv[2], sys.argv[3])
