"""Sizes and shares of phase files: one meaning for workloads and gates, each with its own words."""

import pytest

from stressor.config import units
from stressor.workloads import literals, params

SIZES = {
    "512B": 512,
    "4KiB": 4096,
    "64 MiB": 64 << 20,
    "1.5GiB": 3 << 29,
    "2TiB": 2 << 40,
    "1kB": 1000,
    "500MB": 500_000_000,
    "3GB": 3_000_000_000,
    "1TB": 10**12,
    "999999999999999B": 999_999_999_999_999,
}
NO_SIZES = ("64", "-1MiB", "1KB", "1mib", "MiB", "1e3B", "1 .5MiB", "1MiB ", "", 64, 0, None, True)
NO_SHARES = ("40", "-1%", "%", "1e1%", "40%%", "nan%", "", 40, 0.4, None, True)
ENDLESS = "9" * 400


def test_a_size_is_the_same_for_a_parameter_and_a_limit() -> None:
    for text, size in SIZES.items():
        read = {literals.size_bytes(text), params.size_bytes(text), units.size_bytes(text)}
        assert read == {size}, text


def test_a_share_is_the_same_for_a_parameter_and_a_limit() -> None:
    for text, share in {"40%": 0.4, "0%": 0.0, "12.5 %": 0.125, "250%": 2.5}.items():
        assert {literals.share(text), params.ratio(text), units.ratio(text)} == {share}, text


def test_anything_else_is_none() -> None:
    for value in (*NO_SIZES, ENDLESS + "TiB"):
        assert literals.size_bytes(value) is None, value
    for no_share in (*NO_SHARES, ENDLESS + "%"):
        assert literals.share(no_share) is None, no_share


def test_each_reader_refuses_in_its_own_words() -> None:
    with pytest.raises(ValueError, match=r"^is not a size: '1KB'; write it like 4KiB, 64MiB or"):
        params.size_bytes("1KB")
    with pytest.raises(ValueError, match=r"^`1KB` is not a size: write it like 4KiB, 16MiB or"):
        units.size_bytes("1KB")
    with pytest.raises(ValueError, match=r"^is not a share: '40'; write it like 40%$"):
        params.ratio("40")
    with pytest.raises(ValueError, match=r"^`40` is not a share: write it like 40%$"):
        units.ratio("40")


def test_zero_needs_a_unit_in_a_parameter_and_none_in_a_limit() -> None:
    assert (units.size_bytes(0), units.ratio(0)) == (0, 0.0)
    with pytest.raises(ValueError, match="is not a size: 0"):
        params.size_bytes(0)
    with pytest.raises(ValueError, match="is not a share: 0"):
        params.ratio(0)
