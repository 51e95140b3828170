from pathlib import Path

import pytest

from queen_operator.broker.prometheus import Page, read_page

PAGES = Path(__file__).parent / "pages"
HEALTHY = (PAGES / "healthy.txt").read_bytes()
AWAY = (PAGES / "database_away.txt").read_bytes()
GOOD = Page(maintenance=False, pending=0, failed_writes=0, database_healthy=True, cluster_series=True)


def with_line(name: str, line: str) -> Page:
    """Read the healthy page with the sample of ``name`` replaced by ``line``."""
    lines = HEALTHY.decode().splitlines()
    assert sum(text.startswith(f"{name} ") for text in lines) == 1
    return read_page("\n".join(line if text.startswith(f"{name} ") else text for text in lines).encode(), whole=True)


def test_the_page_of_a_healthy_broker_says_everything() -> None:
    assert read_page(HEALTHY, whole=True) == GOOD


def test_a_page_in_maintenance_mode_says_so_and_counts_the_spooled_push() -> None:
    page = read_page((PAGES / "maintenance.txt").read_bytes(), whole=True)
    assert (page.maintenance, page.pending) == (True, 1)


def test_a_page_made_without_the_database_has_no_cluster_series() -> None:
    samples = [line for line in AWAY.decode().splitlines() if not line.startswith("#")]
    assert len(samples) == 134  # as measured: 24 fewer than with the database
    assert read_page(AWAY, whole=True).cluster_series is False


def test_help_lines_of_cluster_series_are_not_series() -> None:
    page = read_page(AWAY + b"# TYPE queen_cluster_dlq_total counter\n", whole=True)
    assert page.cluster_series is False


def test_absent_cluster_series_are_unknown_on_a_page_that_was_cut_off() -> None:
    cut = HEALTHY[: HEALTHY.index(b"# HELP queen_cluster_")]
    assert read_page(cut, whole=True).cluster_series is False
    assert read_page(cut, whole=False).cluster_series is None


def test_a_number_cut_in_half_is_not_read() -> None:
    page = b"queen_file_buffer_failed 3\nqueen_file_buffer_pending 12"
    assert read_page(page, whole=False) == Page(failed_writes=3)
    assert read_page(page, whole=True).pending == 12


@pytest.mark.parametrize(
    "line",
    [
        "queen_file_buffer_pending",
        "queen_file_buffer_pending ",
        "queen_file_buffer_pending -1",
        "queen_file_buffer_pending 0.5",
        "queen_file_buffer_pending NaN",
        "queen_file_buffer_pending +Inf",
        "queen_file_buffer_pending 1e400",
        "queen_file_buffer_pending 1e300",
        "queen_file_buffer_pending 1 2 3",
        "queen_file_buffer_pending 1x",
        "queen_file_buffer_pending 0x10",
        "queen_file_buffer_pending ١",
        'queen_file_buffer_pending{shard="1"} 1',
        "queen_file_buffer_pending_total 1",
        " queen_file_buffer_pending 1",
        "queen_file_buffer_pending 1\nqueen_file_buffer_pending 2",
        "# queen_file_buffer_pending 1",
    ],
)
def test_a_count_that_is_no_count_is_unknown(line: str) -> None:
    page = with_line("queen_file_buffer_pending", line)
    assert page == Page(False, None, 0, True, True)


@pytest.mark.parametrize("number", ["7", "7.000", "7e0", "+7", "7 1767225600000", "7\r"])
def test_every_spelling_of_a_count_is_read(number: str) -> None:
    assert with_line("queen_file_buffer_pending", f"queen_file_buffer_pending {number}").pending == 7


@pytest.mark.parametrize("number", ["2", "-1", "0.5", "true", ""])
def test_a_flag_is_0_or_1_and_else_unknown(number: str) -> None:
    page = with_line("queen_maintenance_mode_enabled", f"queen_maintenance_mode_enabled {number}")
    assert page.maintenance is None


@pytest.mark.parametrize("body", [b"", b"\n", b"<!doctype html><html></html>", b'{"uptime":0}', b"\x00\xff" * 1000])
def test_what_is_no_broker_page_says_nothing(body: bytes) -> None:
    assert read_page(body, whole=True) == Page()


def test_a_page_of_thousands_of_queues_is_read_to_its_end() -> None:
    queues = b"".join(b'queen_queue_pop_lag_milliseconds{queue="q%d",stat="avg"} 1.5\n' % n for n in range(20_000))
    reordered = queues + HEALTHY
    assert read_page(reordered, whole=True) == GOOD
