"""What needs no server."""

import json

import pytest

from graph_kernel_client import (
    ConfigurationError,
    GraphKernelError,
    PolicyRef,
    RetrievalProvenance,
    SearchResult,
    SliceExport,
    SliceInfo,
    SliceScopedResults,
    TrajectoryCoordinates,
    can_promote_to_atom,
    quantize_float,
    verify_replay,
)
from graph_kernel_client.config import conninfo, timeout_milliseconds
from graph_kernel_client.retrieval import SliceScopedQuery

EXPORT = SliceExport("slice", "turn_001", ["turn_001", "turn_002"], 1, "slice_policy_v1", "hash", "1.0.0")
INFO = SliceInfo("slice", "turn_001", 2, 1, PolicyRef("slice_policy_v1", "hash"), "1.0.0", "snapshot", "token")


def result(turn: int) -> SearchResult:
    from uuid import UUID

    return SearchResult(UUID(int=turn), "text", "user", 0.5, UUID(int=9), TrajectoryCoordinates())


def test_scoped_query_as_printed() -> None:
    query = SliceScopedQuery.from_slice_export(text="authentication flow", slice_export=EXPORT, limit=10)
    assert query.is_admissible("turn_001") is True
    assert query.is_admissible("turn_999") is False
    assert query.filter_admissible(["turn_002", "turn_999", "turn_001"]) == ["turn_002", "turn_001"]
    again = SliceScopedQuery.from_slice_export(text="test", slice_export=EXPORT)
    assert (again.slice_id, again.admissible_turn_ids) == (query.slice_id, query.admissible_turn_ids)


def test_export_membership_and_frozen_reference() -> None:
    assert EXPORT.is_admissible("turn_002") and EXPORT.is_turn_admissible("turn_002")
    assert not EXPORT.is_admissible("turn_003")
    with pytest.raises(AttributeError):
        EXPORT.policy_ref.params_hash = "other"  # type: ignore[misc]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"slice_id": "x"}', "null", "[" * 200_000])
def test_what_is_not_an_export(text: str) -> None:
    with pytest.raises(GraphKernelError) as caught:
        SliceExport.from_json(text)
    assert caught.value.word == "INVALID_EXPORT"


@pytest.mark.parametrize("document", [{}, {"retrieval_mode": "slice"}, {"retrieval_mode": "global"}])
def test_what_is_not_a_provenance(document: dict[str, object]) -> None:
    with pytest.raises(GraphKernelError) as caught:
        RetrievalProvenance.from_document(document)
    assert caught.value.word == "INVALID_PROVENANCE"


def test_no_part_of_a_password_is_shown() -> None:
    right = "host=127.0.0.1 user=x password=SE://CRET"
    assert conninfo(right) == right
    for wrong in ("u:SECRET@h://x", "mysql://u:SECRET@h/x"):
        with pytest.raises(ConfigurationError) as caught:
            conninfo(wrong)
        assert "SECRET" not in str(caught.value)


def test_the_four_conditions() -> None:
    admissible = RetrievalProvenance.create_slice_provenance("q", INFO, [])
    assert admissible.is_admissible and admissible.slice_id == "slice"
    assert not RetrievalProvenance.create_global_provenance("q", []).is_admissible
    assert not RetrievalProvenance.create_slice_provenance("q", INFO, [], admissibility_shortfall=True).is_admissible
    for field in ("slice_id", "graph_snapshot_hash", "admissibility_token", "schema_version", "anchor_turn_id"):
        incomplete = SliceInfo(**{**INFO.__dict__, field: ""})
        assert not incomplete.has_valid_token()
        assert not RetrievalProvenance.create_slice_provenance("q", incomplete, []).is_admissible


def test_promotion_and_replay() -> None:
    one, two = result(1), result(2)
    provenance = RetrievalProvenance.create_slice_provenance("q", INFO, [str(one.turn_id)], query_embedding_hash="e")
    assert can_promote_to_atom(one, provenance) and not can_promote_to_atom(two, provenance)
    everywhere = RetrievalProvenance.create_global_provenance("q", [str(one.turn_id)])
    assert not can_promote_to_atom(one, everywhere)
    assert verify_replay(provenance, SliceScopedResults([one], provenance))
    for field, value in {"query_embedding_hash": "f", "retrieved_turn_ids": [], "slice_info": None}.items():
        other = RetrievalProvenance(**{**provenance.__dict__, field: value})
        assert not verify_replay(provenance, SliceScopedResults([one], other))


def test_quantized_floats() -> None:
    # As the kernel's own test has them.
    kernel = {0.0078125: 7813, 0.0234375: 23_438, 100.3: 100_300_003, 0.9: 900_000, -0.5: -500_000, -0.0078125: -7813}
    assert {value: quantize_float(value) for value in kernel} == kernel
    assert [quantize_float(value) for value in (0.9, 1, 0.3, -2.5, 1e-7)] == [
        900_000,
        1_000_000,
        300_000,
        -2_500_000,
        0,
    ]


@pytest.mark.parametrize("url", ["http://localhost:8001", "HTTPS://kernel", "mysql://x/y"])
def test_addresses_of_a_service_are_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="base_url"):
        conninfo(url)
    monkeypatch.setenv("GRAPH_KERNEL_URL", url)
    with pytest.raises(ConfigurationError, match="GRAPH_KERNEL_URL"):
        conninfo(None)


def test_settings_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert conninfo(None) == "" and timeout_milliseconds(None) is None
    monkeypatch.setenv("GRAPH_KERNEL_URL", "postgresql://host/db")
    monkeypatch.setenv("GRAPH_KERNEL_TIMEOUT", "2.5")
    assert conninfo(None) == "postgresql://host/db" and timeout_milliseconds(None) == 2500
    assert conninfo("host=other") == "host=other" and timeout_milliseconds(30.0) == 30_000
    for wrong in ("soon", "0", "-1", "nan", "inf"):
        monkeypatch.setenv("GRAPH_KERNEL_TIMEOUT", wrong)
        with pytest.raises(ConfigurationError, match="GRAPH_KERNEL_TIMEOUT"):
            timeout_milliseconds(None)


def test_json_of_an_export_is_kept_byte_for_byte() -> None:
    text = json.dumps(
        {
            "anchor_turn_id": "a",
            "turns": [{"id": "a"}],
            "edges": [],
            "policy_id": "slice_policy_v1",
            "policy_params_hash": "h",
            "schema_version": "1.0.0",
            "slice_id": "s",
            "graph_snapshot_hash": "g",
            "admissibility_token": None,
            "attestation": None,
        }
    )
    export = SliceExport.from_json(text)
    assert (export.document, export.policy, export.edge_count, export.turn_ids) == (text, None, 0, ["a"])


@pytest.mark.parametrize("url", ["postgresql://u:s3cret@[::bad/db", "postgresql://u:s3cret%00@host/db", "u:s3cret@h"])
def test_no_password_is_repeated(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        conninfo(url)
    assert "s3cret" not in str(caught.value) and "libpq" in str(caught.value)
    assert caught.value.__suppress_context__
