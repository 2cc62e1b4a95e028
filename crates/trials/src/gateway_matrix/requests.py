"""A client of Redis that writes 200 bytes again and again, 50 ms after each answer.

python3 requests.py ADDRESS PORT OVER    ends when there is a file OVER, with an error if an answer is wrong
"""

import os
import socket
import sys
import time

PAUSE_S = 0.05


def main(address, port, over):
    with socket.create_connection((address, int(port))) as server:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answers = server.makefile("rb")
        n = 0
        while not os.path.exists(over):
            value = f"{n:0200d}".encode()
            server.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$200\r\n" + value + b"\r\n")
            if (answer := answers.readline()) != b"+OK\r\n":
                sys.exit(f"request {n}: {answer!r}")
            n += 1
            time.sleep(PAUSE_S)
        server.sendall(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
        answers.readline()
        if (last := answers.readline().strip()) != value:
            sys.exit(f"after {n} requests: {last!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
