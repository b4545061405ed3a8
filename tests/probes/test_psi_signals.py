"""PSI ratios from the texts of /proc/pressure (Linux 6.18)."""

from dataclasses import replace
from pathlib import Path

import pytest

from stressor.model import Sample
from stressor.probes.psi import SIGNALS, PsiTotals, difference, parse, unanswered

FIXTURES = Path(__file__).parent / "fixtures" / "psi"
TEXTS = {name: (FIXTURES / f"{name}.txt").read_text() for name in ("cpu", "io", "memory")}
BEFORE = PsiTotals(100.0, 1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000)


def ratios(before: PsiTotals, after: PsiTotals) -> dict[str, Sample]:
    return {s.signal: s for s in difference(before, after, source="w-1", at_s=5.0)}


def test_recorded_texts_are_read() -> None:
    totals = parse(TEXTS, boot_s=12.5)
    assert totals.boot_s == 12.5
    assert f"total={totals.cpu_some_us}\n" in TEXTS["cpu"]
    assert f"total={totals.io_some_us}\nfull" in TEXTS["io"]
    assert TEXTS["io"].endswith(f"total={totals.io_full_us}\n")
    assert totals.io_some_us != totals.io_full_us
    assert (totals.memory_some_us, totals.memory_full_us) == (0, 0)


def test_each_ratio_is_its_own_stall_over_time() -> None:
    after = PsiTotals(102.0, 1_200_000, 2_400_000, 3_600_000, 4_800_000, 6_000_000)
    assert {name: sample.value for name, sample in ratios(BEFORE, after).items()} == {
        "psi_cpu_some_ratio": pytest.approx(0.1),
        "psi_io_some_ratio": pytest.approx(0.2),
        "psi_io_full_ratio": pytest.approx(0.3),
        "psi_memory_some_ratio": pytest.approx(0.4),
        "psi_memory_full_ratio": pytest.approx(0.5),
    }


def test_no_stall_is_zero_and_a_full_stall_is_one() -> None:
    after = replace(BEFORE, boot_s=101.0, io_full_us=4_000_900)
    samples = ratios(BEFORE, after)
    assert samples["psi_io_full_ratio"].value == 1.0
    assert samples["psi_io_some_ratio"].value == 0.0


def test_a_file_that_became_unreadable_is_unknown() -> None:
    after = replace(BEFORE, boot_s=101.0, io_full_us=None)
    assert ratios(BEFORE, after)["psi_io_full_ratio"].value is None


def test_an_unreadable_file_is_unknown_and_leaves_the_others() -> None:
    before = parse({"cpu": TEXTS["cpu"], "io": ""}, boot_s=1.0)
    after = replace(before, boot_s=2.0)
    samples = ratios(before, after)
    assert samples["psi_cpu_some_ratio"].value == 0.0
    for name in ("psi_io_some_ratio", "psi_io_full_ratio", "psi_memory_some_ratio"):
        assert samples[name].value is None
        assert "cannot be read" in samples[name].detail


@pytest.mark.parametrize(
    "after", [replace(BEFORE, boot_s=99.0), BEFORE, replace(BEFORE, boot_s=101.0, io_full_us=1)]
)
def test_a_reboot_discards_the_window(after: PsiTotals) -> None:
    sample = ratios(BEFORE, after)["psi_io_full_ratio"]
    assert sample.value is None
    assert "window discarded" in sample.detail


def test_a_silent_host_is_unknown() -> None:
    samples = unanswered("w-1", 5.0, "channel lost")
    assert [s.signal for s in samples] == [spec.name for spec in SIGNALS]
    assert {(s.value, s.detail) for s in samples} == {(None, "channel lost")}
