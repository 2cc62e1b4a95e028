"""A transfer over QUIC, as aioquic has it with its defaults.

serve ADDRESS PORT        sends to whoever opens a stream
fetch ADDRESS PORT FILE    waits for a line on standard input, opens a stream, and notes in FILE for each piece of it
                           that can be read in order when it came, in nanoseconds of the monotonic clock, and its
                           bytes; or "ended" and why

Both say "ready" on standard error first.
"""

import asyncio
import datetime
import sys
import tempfile
import time

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamDataReceived
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PROTOCOL = ["outlast-trial"]
# More than the link carries in a run. After so many bytes, a prime number, the payload repeats itself.
LENGTH = 50_000_000
PERIOD = 251
PATTERN = bytes(range(PERIOD))


def ready():
    print("ready", file=sys.stderr, flush=True)


def certificate():
    """A certificate that signs itself, and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "fixed.example")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    file = tempfile.NamedTemporaryFile(suffix=".pem")
    file.write(made.public_bytes(serialization.Encoding.PEM))
    file.write(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    file.flush()
    return file


class Server(QuicConnectionProtocol):
    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived) and event.end_stream:
            payload = PATTERN * (LENGTH // PERIOD)
            self._quic.send_stream_data(event.stream_id, payload)
            self.transmit()


class Client(QuicConnectionProtocol):
    offset = 0
    notes = sys.stdout

    def note(self, *words):
        print(*words, file=self.notes, flush=True)

    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived):
            begin = self.offset % PERIOD
            count = len(event.data)
            expected = (PATTERN * (count // PERIOD + 2))[begin : begin + count]
            if event.data != expected:
                self.note("ended", "with other bytes than were sent")
            self.offset += count
            self.note(time.monotonic_ns(), count)
        elif isinstance(event, ConnectionTerminated):
            self.note("ended", event.reason_phrase or f"with error {event.error_code:#x}")


async def serve_forever(address, port):
    configuration = QuicConfiguration(is_client=False, alpn_protocols=PROTOCOL)
    with certificate() as file:
        configuration.load_cert_chain(file.name)
    await serve(address, port, configuration=configuration, create_protocol=Server)
    ready()
    await asyncio.Future()


async def fetch(address, port, file):
    configuration = QuicConfiguration(is_client=True, alpn_protocols=PROTOCOL)
    # Whose certificate it is, is not what is tried here.
    configuration.verify_mode = 0
    ready()
    sys.stdin.readline()
    Client.notes = open(file, "w", encoding="utf-8")
    async with connect(address, port, configuration=configuration, create_protocol=Client) as client:
        _, writer = await client.create_stream()
        writer.write(b"go")
        writer.write_eof()
        await client.wait_closed()


if __name__ == "__main__":
    end = {"serve": serve_forever, "fetch": fetch}[sys.argv[1]]
    asyncio.run(end(sys.argv[2], int(sys.argv[3]), *sys.argv[4:]))
