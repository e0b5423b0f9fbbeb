"""Documents from outside: every key once, numbers by their exact value, and the canonical form of numbers."""

from __future__ import annotations

import json
import math
import re
import struct
import uuid
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any, NoReturn, TypeVar

__all__ = ["Malformed", "Number", "Object", "binary32_text", "compact", "read"]

T = TypeVar("T")
_MAX_DEPTH = 128
_HEX = re.compile(r"[0-9a-f]+\Z")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


class Malformed(ValueError):
    """A text that is not the document that it should be."""


class Number(str):
    """A number as it was written."""

    def integer(self) -> int | None:
        """The integer of 64 bits, however it was written: 17, 17.0 and 1.7e1 are the same."""
        value = _decimal(self)
        if value is None or (value and not 0 <= value.adjusted() <= 19) or value != value.to_integral_value():
            return None
        whole = int(value)
        return whole if -(2**63) <= whole < 2**63 else None

    def binary32(self) -> float | None:
        """The binary32 of which this is the shortest text, or the shortest text of the same number as a binary64."""
        digits = re.split("[eE]", self)[0].replace(".", "").strip("-0")
        # No shortest text of a binary64 has more. What is longer takes long to compute with.
        if len(digits) > _MOST_DIGITS:
            return None
        if len(self) <= _LONG_TEXT:
            return _binary32(str(self))
        # The same number without its many zeros, which would all be computed with, and remembered.
        value = _decimal(self)
        if value is None:
            return None
        if value.is_zero():
            return -0.0 if value.is_signed() else 0.0
        return _binary32(str(value.normalize(_CONTEXT))) if -100 < value.adjusted() < 100 else None


_MOST_DIGITS = 17
_LONG_TEXT = 64


# What is exact here, whatever the application has set for its own decimals.
_CONTEXT = Context(prec=50, traps=[InvalidOperation])


@lru_cache(maxsize=65_536)
def _binary32(text: str) -> float | None:
    with localcontext(_CONTEXT):
        return _read_binary32(text)


def _read_binary32(text: str) -> float | None:
    try:
        (near,) = struct.unpack("<f", struct.pack("<f", float(text)))
        # As exports have it.
        if math.isfinite(near) and text == binary32_text(near):
            return float(near)
    except OverflowError:
        return None
    given = _decimal(text)
    number = None if given is None else _nearest32(given)
    if given is None or number is None:
        return None
    if given.is_zero():
        return -0.0 if given.is_signed() else 0.0
    exact = Decimal(number)
    texts = [*_shortest(exact, _is32(number)), *_shortest(exact, lambda text: float(text) == number)]
    return number if any(given == text for text in texts) else None


def _decimal(text: str) -> Decimal | None:
    """The exact value; None where its exponent is beyond all numbers that are used."""
    with localcontext(_CONTEXT):
        try:
            return Decimal(text)
        except ArithmeticError:
            mantissa = text.lower().split("e")[0]
            return None if mantissa.strip("-0.") else Decimal(mantissa)


def _nearest32(value: Decimal) -> float | None:
    """The nearest binary32, of two the even one; None where that is infinite."""
    if not value.is_finite() or (value and value.adjusted() > 40):
        return None
    if value and value.adjusted() < -60:
        return -0.0 if value.is_signed() else 0.0
    try:
        (near,) = struct.unpack("<f", struct.pack("<f", float(value)))
    except OverflowError:
        return None
    bits = struct.unpack("<I", struct.pack("<f", near))[0]
    exact = Fraction(value)
    candidates = []
    for other in (bits - 1, bits, bits + 1):
        if other >= 0 and (other & 0x7FFFFFFF) < 0x7F800000 and (other ^ bits) < 0x80000000:
            (candidate,) = struct.unpack("<f", struct.pack("<I", other))
            candidates.append((abs(Fraction(candidate) - exact), other & 1, candidate))
    largest = Fraction(2**128 - 2**103)  # from here on rounded to infinity
    if not candidates or abs(exact) >= largest:
        return None
    best: float = min(candidates)[2]
    return best


def _is32(number: float) -> Callable[[Decimal], bool]:
    return lambda text: _nearest32(text) == number


def _shortest(exact: Decimal, reads_back: Callable[[Decimal], bool]) -> list[Decimal]:
    """The decimals of fewest digits that read back; of those the nearest, or both of two that are equally near."""
    for digits in range(1, 18):
        around = {
            Context(prec=digits, rounding=rounding, traps=[]).create_decimal(exact)
            for rounding in (ROUND_FLOOR, ROUND_CEILING)
        }
        found = [text for text in around if reads_back(text)]
        if found:
            nearest = min(abs(Fraction(text) - Fraction(exact)) for text in found)
            return [text for text in found if abs(Fraction(text) - Fraction(exact)) == nearest]
    raise AssertionError(exact)


def binary32_text(number: float) -> str:
    """The shortest text of a binary32, as exports have it; of two that are equally near the one with an even digit."""
    # Before what is remembered: the two zeros are one key.
    if number == 0:
        return "-0.0" if struct.pack("<d", number)[7] else "0.0"
    return _binary32_text(float(number))


@lru_cache(maxsize=65_536)
def _binary32_text(number: float) -> str:
    with localcontext(_CONTEXT):
        text = _shortest_even(number).normalize()
    sign, digits, _ = text.as_tuple()
    exponent = text.adjusted()
    whole = "".join(map(str, digits))
    prefix = "-" if sign else ""
    if -6 <= exponent < 0:
        return f"{prefix}0.{'0' * (-exponent - 1)}{whole}"
    if 0 <= exponent < _LARGEST_PLAIN:
        if len(whole) <= exponent + 1:
            return f"{prefix}{whole}{'0' * (exponent + 1 - len(whole))}.0"
        return f"{prefix}{whole[: exponent + 1]}.{whole[exponent + 1 :]}"
    mantissa = whole[0] + (f".{whole[1:]}" if len(whole) > 1 else "")
    return f"{prefix}{mantissa}e{'+' if exponent > 0 else '-'}{abs(exponent)}"


def _shortest_even(number: float) -> Decimal:
    bits = struct.unpack("<I", struct.pack("<f", number))[0]
    # Not where numbers are denser below than above, nor where all have fewer bits.
    if bits & 0x007FFFFF and bits & 0x7F800000:
        for digits in range(9):
            # The nearest of so many digits, of two an even one: it reads back where any other does.
            text = f"{number:.{digits}e}"
            wide = float(text)
            if struct.unpack("<Q", struct.pack("<d", wide))[0] & 0x1FFFFFFF == 0x10000000:
                break  # halfway between two: the digits behind decide
            try:
                if struct.unpack("<f", struct.pack("<f", wide))[0] == number:
                    return Decimal(text)
            except OverflowError:
                continue
    return _slow_shortest_even(number)


def _slow_shortest_even(number: float) -> Decimal:
    texts = _shortest(Decimal(number), _is32(number))
    return next((text for text in texts if text.as_tuple().digits[-1] % 2 == 0), texts[0])


_LARGEST_PLAIN = 13


def compact(value: Any) -> str:
    """Compact JSON, keys as they stand; floats are not written by this."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise Malformed("a key is given twice")
    return made


def _constant(name: str) -> NoReturn:
    raise Malformed(f"not valid JSON: {name}")


def _check(value: Any, depth: int = 0) -> None:
    if depth > _MAX_DEPTH:
        raise Malformed(f"JSON nested more than {_MAX_DEPTH} deep")
    if isinstance(value, dict):
        for key, nested in value.items():
            _text(key)
            _check(nested, depth + 1)
    elif isinstance(value, list):
        for nested in value:
            _check(nested, depth + 1)
    elif isinstance(value, str) and not isinstance(value, Number):
        _text(value)


def _text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Malformed("half a surrogate pair") from None


# A number is read to its end; of a string, which is between quotes, what an escape stands for counts as it is written.
_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"?|-?[0-9][0-9.eE+-]*', re.S)


def _check_tokens(text: bytes, max_bytes: int) -> None:
    for token in _TOKEN.finditer(text):
        if len(token[0] if token[1] is None else token[1]) > max_bytes:
            raise Malformed(f"a string or number of more than {max_bytes} bytes")


def read(text: str, max_bytes: int, max_token_bytes: int) -> Any:
    """The value of a text, numbers as `Number`."""
    try:
        encoded = text.encode()
        if len(encoded) > max_bytes:
            raise Malformed(f"longer than {max_bytes} bytes")
        if len(encoded) > max_token_bytes:
            _check_tokens(encoded, max_token_bytes)
        value = json.loads(
            text, object_pairs_hook=_pairs, parse_int=Number, parse_float=Number, parse_constant=_constant
        )
        _check(value)
    except Malformed:
        raise
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not valid JSON: {error}") from error
    return value


class Object:
    """An object with exactly the keys that are taken out of it."""

    def __init__(self, value: Any) -> None:
        if not isinstance(value, dict):
            raise Malformed("not an object")
        self._left = dict(value)

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def take(self, key: str) -> Any:
        if key not in self._left:
            raise Malformed(f"{key} is missing")
        return self._left.pop(key)

    def finish(self) -> None:
        if self._left:
            raise Malformed(f"there is no key {min(self._left)}")

    def string(self, key: str) -> str:
        value = self.take(key)
        if not isinstance(value, str) or isinstance(value, Number) or "\0" in value:
            raise Malformed(f"{key} is not a string")
        return value

    def optional_string(self, key: str) -> str | None:
        return self._optional(key, self.string)

    def hex(self, key: str, length: int) -> str:
        value = self.string(key)
        if len(value) != length or not _HEX.match(value):
            raise Malformed(f"{key} has not {length} lower-case hex digits")
        return value

    def optional_hex(self, key: str, length: int) -> str | None:
        return self._optional(key, lambda key: self.hex(key, length))

    def named(self, key: str, names: tuple[str, ...]) -> str:
        value = self.string(key)
        if value not in names:
            raise Malformed(f"{key} is not one of its names")
        return value

    def uuid(self, key: str) -> str:
        return as_uuid(self.string(key))

    def boolean(self, key: str) -> bool:
        value = self.take(key)
        if not isinstance(value, bool):
            raise Malformed(f"{key} is not true or false")
        return value

    def integer(self, key: str, least: int = -(2**63), most: int = 2**63 - 1) -> int:
        return as_integer(self.take(key), least, most)

    def optional_integer(self, key: str, least: int, most: int) -> int | None:
        return self._optional(key, lambda key: self.integer(key, least, most))

    def count(self, key: str) -> int:
        return self.integer(key, 0, 2**32 - 1)

    def binary32(self, key: str) -> float:
        value = self.take(key)
        number = value.binary32() if isinstance(value, Number) else None
        if number is None:
            raise Malformed(f"{key} is not a binary32")
        return number

    def list(self, key: str, item: Callable[[Any], T]) -> list[T]:
        value = self.take(key)
        if not isinstance(value, list):
            raise Malformed(f"{key} is not an array")
        return [item(entry) for entry in value]

    def _optional(self, key: str, read: Callable[[str], T]) -> T | None:
        if key in self._left and self._left[key] is None:
            self._left.pop(key)
            return None
        return read(key)


def as_integer(value: Any, least: int, most: int) -> int:
    number = value.integer() if isinstance(value, Number) else None
    if number is None or not least <= number <= most:
        raise Malformed("not an integer in its range")
    return number


def as_uuid(text: Any) -> str:
    """A uuid in the only spelling that exports have."""
    if not isinstance(text, str) or not _UUID.match(text):
        raise Malformed("not a uuid in lower case")
    return text


def uuid_bytes(text: str) -> bytes:
    return uuid.UUID(text).bytes
