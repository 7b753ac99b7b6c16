"""Writes small databases of addresses in MaxMind's format (https://maxmind.github.io/MaxMind-DB/)."""

import ipaddress
import struct

MARKER = b"\xab\xcd\xefMaxMind.com"
TEXT, UINT16, UINT32, MAP, UINT64, ARRAY = 2, 5, 6, 7, 9, 11


class UInt16(int):
    pass


class UInt64(int):
    pass


def _control(kind, size):
    first, more = (kind << 5, b"") if kind < 8 else (0, bytes([kind - 7]))
    if size < 29:
        return bytes([first | size]) + more
    assert size < 29 + 256, size
    return bytes([first | 29]) + more + bytes([size - 29])


def encode(value):
    """A value of the data section: a dict, a list, a text, or a number."""
    match value:
        case dict():
            return _control(MAP, len(value)) + b"".join(encode(name) + encode(one) for name, one in value.items())
        case list():
            return _control(ARRAY, len(value)) + b"".join(map(encode, value))
        case str():
            return _control(TEXT, len(value.encode())) + value.encode()
        case int():
            kind = UINT16 if isinstance(value, UInt16) else UINT64 if isinstance(value, UInt64) else UINT32
            digits = int(value).to_bytes(8, "big").lstrip(b"\0")
            return _control(kind, len(digits)) + digits
    raise TypeError(value)


def database(networks, built, kind="Test", version=6):
    """The bytes of a database.

    networks: the data of each network by its CIDR notation. A smaller network replaces a part of a larger one.
    built: when it was made, in Unix time. version: 4 or 6; IPv4 addresses of an IPv6 database are in ::/96.
    """
    nodes = [[None, None]]
    data, places = b"", {}

    def put(place, depth, bits, length, leaf):
        bit = bits >> (length - 1 - depth) & 1
        if depth == length - 1:
            nodes[place][bit] = leaf
            return
        inner = nodes[place][bit]
        if inner is None or inner[0] == "data":
            nodes.append([inner, inner])
            inner = nodes[place][bit] = ("node", len(nodes) - 1)
        put(inner[1], depth + 1, bits, length, leaf)

    for network in sorted(map(ipaddress.ip_network, networks), key=lambda one: one.prefixlen):
        encoded = encode(networks[str(network)])
        if encoded not in places:
            places[encoded] = len(data)
            data += encoded
        length, bits = network.prefixlen, int(network.network_address) >> (network.max_prefixlen - network.prefixlen)
        if network.version == 4 and version == 6:
            length += 96
        put(0, 0, bits, length, ("data", places[encoded]))

    def record(leaf):
        if leaf is None:
            return len(nodes)
        return leaf[1] if leaf[0] == "node" else len(nodes) + 16 + leaf[1]

    tree = b"".join(struct.pack(">I", record(leaf))[1:] for node in nodes for leaf in node)
    about = {
        "node_count": len(nodes), "record_size": UInt16(24), "ip_version": UInt16(version), "database_type": kind,
        "languages": ["en"], "binary_format_major_version": UInt16(2), "binary_format_minor_version": UInt16(0),
        "build_epoch": UInt64(built), "description": {"en": kind},
    }
    return tree + bytes(16) + data + MARKER + encode(about)


def country(code):
    """The data of a network as in GeoLite2-Country."""
    return {"country": {"iso_code": code, "names": {"en": code}}}


def system(number, name="Example"):
    """The data of a network as in GeoLite2-ASN."""
    return {"autonomous_system_number": number, "autonomous_system_organization": name}
