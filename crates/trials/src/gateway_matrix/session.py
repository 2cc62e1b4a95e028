"""A session over WebSocket in which something new is said every 50 ms.

serve ADDRESS PORT OVER FILE    talks to whoever comes until there is a file OVER, and notes in FILE what it says
follow ADDRESS PORT FILE         listens to the end, and notes in FILE what it hears
"""

import asyncio
import hashlib
import itertools
import os
import sys

import websockets

INTERVAL_S = 0.05

# Both ends would give up after forty seconds without an answer to their own questions. Whether a
# session lives that long is its application's choice; here it is to live.
OPTIONS = {"ping_interval": None, "compression": None}


async def serve(address, port, over, file):
    done = asyncio.Event()

    async def speak(socket, _path=None):
        begun = asyncio.get_running_loop().time()
        with open(file, "w", encoding="ascii") as said:
            for n in itertools.takewhile(lambda _: not os.path.exists(over), itertools.count()):
                text = f"{n} {hashlib.sha256(str(n).encode()).hexdigest()}"
                said.write(text + "\n")
                said.flush()
                await socket.send(text)
                left = begun + (n + 1) * INTERVAL_S - asyncio.get_running_loop().time()
                await asyncio.sleep(max(0, left))
        done.set()

    async with websockets.serve(speak, address, int(port), **OPTIONS):
        await done.wait()


async def follow(address, port, file):
    async with websockets.connect(f"ws://{address}:{port}", **OPTIONS) as socket:
        with open(file, "w", encoding="ascii") as heard:
            async for text in socket:
                heard.write(text + "\n")


if __name__ == "__main__":
    asyncio.run({"serve": serve, "follow": follow}[sys.argv[1]](*sys.argv[2:]))
