"""What a correspondent says to a mobile host over HTTP, ssh and a WebSocket, until it is over.

http ADDRESS PORT      serves a body that goes on, and takes one
source FILE            says a body to standard output, and notes it in FILE
tick                   says lines to standard output, as a command of ssh
serve ADDRESS PORT     says lines over a WebSocket
follow ADDRESS PORT FILE   notes in FILE what comes over a WebSocket

It is over when the working directory has a file "over". What is said to whom is in "KIND-ADDRESS.said".
"""

import asyncio
import hashlib
import http.server
import os
import sys
import time

INTERVAL_S = 0.02


def is_over():
    return os.path.exists("over")


def said_to(kind, whom):
    return open(f"{kind}-{whom}.said", "wb", buffering=0)


def line(n):
    return f"{n} {hashlib.sha256(str(n).encode()).hexdigest()}\n"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        with said_to("http", self.client_address[0]) as said:
            while not is_over():
                some = os.urandom(4096)
                self.wfile.write(some)
                said.write(some)
                time.sleep(INTERVAL_S)

    def do_PUT(self):
        with said_to("upload", self.client_address[0]) as heard:
            while size := int(self.rfile.readline(), 16):
                while size:
                    some = self.rfile.read1(size)
                    if not some:
                        return
                    heard.write(some)
                    size -= len(some)
                self.rfile.readline()
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def serve_http(address, port):
    http.server.ThreadingHTTPServer((address, int(port)), Handler).serve_forever()


def source(file):
    with open(file, "wb", buffering=0) as said:
        while not is_over():
            some = os.urandom(4096)
            said.write(some)
            sys.stdout.buffer.write(some)
            sys.stdout.buffer.flush()
            time.sleep(INTERVAL_S)


def tick():
    n = 0
    with said_to("ssh", os.environ["SSH_CONNECTION"].split()[0]) as said:
        while not is_over():
            text = line(n).encode()
            sys.stdout.buffer.write(text)
            sys.stdout.buffer.flush()
            said.write(text)
            n += 1
            time.sleep(INTERVAL_S)


async def serve(address, port):
    import websockets

    async def speak(socket, _path=None):
        n = 0
        with said_to("websocket", socket.remote_address[0]) as said:
            while not is_over():
                await socket.send(line(n))
                said.write(line(n).encode())
                n += 1
                await asyncio.sleep(INTERVAL_S)

    async with websockets.serve(speak, address, int(port), ping_interval=None):
        await asyncio.Future()


async def follow(address, port, file):
    import websockets

    async with websockets.connect(f"ws://{address}:{port}", ping_interval=None) as socket:
        with open(file, "wb", buffering=0) as heard:
            async for text in socket:
                heard.write(text.encode())


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    match what:
        case "http":
            serve_http(*rest)
        case "source":
            try:
                source(*rest)
            except BrokenPipeError:
                # Nobody reads any more.
                os._exit(1)
        case "tick":
            tick()
        case "serve":
            asyncio.run(serve(*rest))
        case "follow":
            asyncio.run(follow(*rest))
