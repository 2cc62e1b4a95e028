"""A stream of 64 kbit/s by UDP, as of a telephone call: 160 bytes every 20 ms.

send ADDRESS PORT                 sends to whoever says something, until nobody has for five minutes
receive ADDRESS PORT OVER FILE    listens until there is a file OVER, and notes in FILE for each datagram
                                  when it was sent and when it came, in nanoseconds of the clock that both
                                  share
"""

import os
import socket
import sys
import time

EVERY_S = 0.02
SIZE = 160
ALIVE_S = 1
FORGOTTEN_S = 300


def opened(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.socket(family, socket.SOCK_DGRAM)


def send(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # Whoever waits for the server looks for one that listens.
    with socket.socket(family) as sign, opened(address) as stream:
        stream.bind((address, int(port)))
        sign.bind((address, int(port)))
        sign.listen()
        _, listener = stream.recvfrom(100)
        stream.setblocking(False)
        heard = due = time.monotonic()
        while time.monotonic() < heard + FORGOTTEN_S:
            try:
                while stream.recv(100):
                    heard = time.monotonic()
            except BlockingIOError:
                pass
            try:
                stream.sendto(str(time.monotonic_ns()).encode().ljust(SIZE), listener)
            except OSError:
                # An ICMP error: the next one takes its own chance.
                pass
            due += EVERY_S
            time.sleep(max(0, due - time.monotonic()))


def receive(address, port, over, file):
    said = 0
    with opened(address) as stream, open(file, "w", encoding="ascii") as heard:
        stream.connect((address, int(port)))
        stream.settimeout(0.2)
        while not os.path.exists(over):
            now = time.monotonic()
            if now > said + ALIVE_S:
                said = now
                try:
                    stream.send(b"here")
                except OSError:
                    pass
            try:
                sent = stream.recv(2 * SIZE).decode().strip()
            except OSError:
                continue
            heard.write(f"{sent} {time.monotonic_ns()}\n")
            heard.flush()


if __name__ == "__main__":
    {"send": send, "receive": receive}[sys.argv[1]](*sys.argv[2:])
