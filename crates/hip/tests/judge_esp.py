"""Seals and opens ESP with Scapy: one request a line, one answer a line."""

import hashlib
import hmac
import struct
import sys

from scapy.layers.inet import IP
from scapy.layers.ipsec import ESP, SecurityAssociation
from scapy.packet import Raw

# A protocol of whose contents Scapy makes nothing (RFC 3692).
EXPERIMENT = 253


def check_value(key, sealed, sequence):
    """HMAC-SHA-256-128 with the upper half of the number, which Scapy 2.5 leaves out of ESP's."""
    whole = sealed + struct.pack("!L", sequence >> 32)
    return hmac.new(key, whole, hashlib.sha256).digest()[:16]


def answer(act, cipher, key, check_key, spi, sequence, packet):
    key, check_key = bytes.fromhex(key.strip("-")), bytes.fromhex(check_key.strip("-"))
    packet = bytes.fromhex(packet)
    sequence = int(sequence)
    association = SecurityAssociation(
        ESP, spi=int(spi), crypt_algo=cipher, crypt_key=key or None,
        esn_en=True, esn=sequence >> 32)
    ip = IP(src="192.0.2.1", dst="192.0.2.2")
    if act == "seal":
        ip.proto = EXPERIMENT
        # Scapy takes a number of zero for none given, and then its own.
        number = association.seq_num = sequence & 0xFFFFFFFF
        sealed = association.encrypt(IP(bytes(ip / Raw(packet))), seq_num=number)
        sealed = bytes(sealed)[20:]
        return sealed + (check_value(check_key, sealed, sequence) if check_key else b"")
    if check_key:
        packet, check = packet[:-16], packet[-16:]
        if not hmac.compare_digest(check, check_value(check_key, packet, sequence)):
            raise ValueError("check value")
    ip.proto = 50
    plain = association.decrypt(IP(bytes(ip / Raw(packet))))
    assert plain.proto == EXPERIMENT and packet[4:8] == struct.pack("!L", sequence & 0xFFFFFFFF)
    return bytes(plain)[20:]


for line in sys.stdin:
    try:
        print(answer(*line.split()).hex(), flush=True)
    except Exception as error:
        print("refused:", repr(error), flush=True)
