"""xxHash64 with seed 0."""

from __future__ import annotations

import struct

_MASK = 2**64 - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _rotate(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & _MASK


def _round(accumulator: int, lane: int) -> int:
    return _rotate((accumulator + lane * _P2) & _MASK, 31) * _P1 & _MASK


def xxh64_hex(data: bytes) -> str:
    """The 16 lower-case hex digits of the fingerprint."""
    length, at = len(data), 0
    if length >= 32:
        lanes = [(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK]
        whole = length - length % 32
        for block in struct.iter_unpack("<4Q", memoryview(data)[:whole]):
            lanes = [_round(lane, word) for lane, word in zip(lanes, block, strict=True)]
        at = whole
        value = sum(_rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            value = ((value ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        value = _P5
    value = (value + length) & _MASK
    while at + 8 <= length:
        (word,) = struct.unpack_from("<Q", data, at)
        value = (_rotate(value ^ _round(0, word), 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= length:
        (word,) = struct.unpack_from("<I", data, at)
        value = (_rotate(value ^ (word * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        value = _rotate(value ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    value = (value ^ (value >> 33)) * _P2 & _MASK
    value = (value ^ (value >> 29)) * _P3 & _MASK
    return f"{value ^ (value >> 32):016x}"
