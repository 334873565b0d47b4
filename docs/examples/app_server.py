#!/usr/bin/env python3
"""A server of the transaction protocol (docs/app-protocol.md); segments lie in memory.
python3 app_server.py [PORT], then: plimsoll run transactions app://127.0.0.1:PORT"""
import socketserver, struct, sys, threading, time, zlib

HELLO, WELCOME = struct.Struct(">4sHHIIQ"), struct.Struct(">4sHHIB3xQQ")
REQUEST, REPLY = struct.Struct(">IB3xIIQIIQ"), struct.Struct(">IBBHIIQ")
BLOCK = bytes((131 * i + i // 256) % 256 for i in range(65536))
OK, BAD_REQUEST, OUT_OF_RANGE = 0, 1, 2
lock, segments = threading.Lock(), {}

def segment_of(client, size):
    with lock:
        if size and len(segments.get(client, b"")) != size:
            segments[client] = bytearray(size)
        return segments[client] if size else b""            # somebody who needs none

def serve(kind, size, offset, seed, work, payload, data, end):
    """Status, body, and the checksum that goes on from the seed."""
    if kind == 1:                                           # client/server
        return OK, bytes(size), zlib.crc32(payload, seed)
    if kind == 2:                                           # processor
        for _ in range(work):
            seed = zlib.crc32(BLOCK, seed)
        return OK, b"", seed
    if kind == 3:                                           # server/client
        return OK, BLOCK[:size], zlib.crc32(BLOCK[:size], seed)
    if kind in (4, 5, 6):                                   # read, write, append
        length = size if kind == 4 else len(payload)
        if kind == 6:
            offset = end[0] if end[0] + length <= len(data) else 0
        if not data or offset + length > len(data):
            return OUT_OF_RANGE, b"", 0
        if kind == 6:
            end[0] = offset + length
        if kind != 4:
            data[offset:offset + length] = payload
        return OK, b"", zlib.crc32(data[offset:offset + length], seed)
    return BAD_REQUEST, b"", 0

class Connection(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        if len(greeting := self.rfile.read(HELLO.size)) < HELLO.size or greeting[:4] != b"PLMS":
            return                                              # another protocol
        _, version, _, client, _, size = HELLO.unpack(greeting)
        refusal = 1 if version != 1 else 2 if size > 64 << 20 else 0
        self.wfile.write(WELCOME.pack(b"PLMS", 1, refusal, 0, 0, 0 if refusal else size, 0))
        data, end = segment_of(client, 0 if refusal else size), [0]
        while not refusal and len(header := self.rfile.read(REQUEST.size)) == REQUEST.size:
            length, kind, ident, size, offset, seed, work, _ = REQUEST.unpack(header)
            if length > 65536 or size > 65536 or work > 1000000:
                return                                      # nobody we understand
            payload, began = self.rfile.read(length), time.monotonic_ns()
            if len(payload) < length:
                return                                          # gone in mid-request
            status, body, sum = serve(kind, size, offset, seed, work, payload, data, end)
            took = time.monotonic_ns() - began
            self.wfile.write(REPLY.pack(len(body), kind, status, 0, ident, sum, took) + body)
            refusal = status == BAD_REQUEST

class Server(socketserver.ThreadingTCPServer):
    daemon_threads, request_queue_size = True, 128

if __name__ == "__main__":
    with Server(("127.0.0.1", int((sys.argv + [7415])[1])), Connection) as server:
        print("listening on app://127.0.0.1:%d/" % server.server_address[1], flush=True)
        server.serve_forever()
