"""What calls take and return: plain values, without a connection."""

from __future__ import annotations

import json
import math
import struct
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Generic, Literal, TypeVar, Union

from .errors import GraphKernelError, invalid_turn_id

__all__ = [
    "DualPlaneHit",
    "DualPlaneResults",
    "GlobalResults",
    "Document",
    "Policy",
    "PolicyRef",
    "PromptTurn",
    "Recall",
    "RecalledTurn",
    "RetrievalProvenance",
    "SearchQuery",
    "SearchResult",
    "ShownMessage",
    "SliceBatch",
    "SliceExport",
    "SliceFailure",
    "SliceInfo",
    "SliceScopedQuery",
    "SliceScopedResults",
    "Step",
    "TrajectoryCoordinates",
    "TurnId",
    "Verdict",
    "can_promote_to_atom",
    "quantize_float",
    "verify_replay",
]

TurnId = Union[str, uuid.UUID]


def turn_uuid(value: TurnId) -> uuid.UUID:
    if isinstance(value, uuid.UUID):
        return value
    try:
        return uuid.UUID(value)
    except (ValueError, AttributeError, TypeError):
        raise invalid_turn_id(value) from None


def quantize_float(value: float) -> int:
    """A parameter of a policy in millionths, as it is hashed: of the nearest binary32, halves away from zero."""
    (narrow,) = struct.unpack("<f", struct.pack("<f", value))
    exact = float(narrow) * 1_000_000
    whole = math.floor(abs(exact) + 0.5)
    return whole if exact >= 0 else -whole


# What an attestation has in millionths, single or by name.
_IN_MILLIONTHS = frozenset(
    [
        "phase_weights",
        "edge_weights",
        "seeds",
        "salience_weight",
        "distance_decay",
        "recall_decay",
        "recall_share",
        "cut_share",
    ]
)


def _of_millionths(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: number / 1_000_000 for key, number in value.items()}
    return None if value is None else value / 1_000_000


@dataclass(frozen=True)
class PolicyRef:
    """A registered policy, by the version of its rules and the fingerprint of its parameters."""

    policy_id: str
    params_hash: str


# A reference, the name of a preset or of a registered policy, or the parameters themselves.
Policy = Union[PolicyRef, str, Mapping[str, Any]]


@dataclass
class SliceExport:
    """A slice: the turns that are admissible at an anchor under a policy.

    `document` is the export as the server gave it, byte for byte: keep that, and verify that. One that an application
    makes of single fields has none, and is only a list of ids.
    """

    slice_id: str
    anchor_turn_id: str
    turn_ids: list[str]
    edge_count: int
    policy_id: str
    policy_params_hash: str
    schema_version: str
    graph_snapshot_hash: str = ""
    admissibility_token: str | None = field(default=None, repr=False)
    document: str | None = field(default=None, repr=False)
    _turn_id_set: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._turn_id_set = frozenset(self.turn_ids)

    @classmethod
    def from_json(cls, document: str) -> SliceExport:
        """The export that this text is. It is read, not verified: see `SliceClient.verify`."""
        try:
            value = json.loads(document)
            return cls(
                slice_id=value["slice_id"],
                anchor_turn_id=value["anchor_turn_id"],
                turn_ids=[turn["id"] for turn in value["turns"]],
                edge_count=len(value["edges"]),
                policy_id=value["policy_id"],
                policy_params_hash=value["policy_params_hash"],
                schema_version=value["schema_version"],
                graph_snapshot_hash=value["graph_snapshot_hash"],
                admissibility_token=value["admissibility_token"],
                document=document,
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise GraphKernelError(f"not an export: {error!r}", sqlstate="22023", word="INVALID_EXPORT") from error

    def is_admissible(self, turn_id: TurnId) -> bool:
        """Whether the turn is in this slice."""
        return str(turn_id) in self._turn_id_set

    is_turn_admissible = is_admissible

    @property
    def policy_ref(self) -> PolicyRef:
        return PolicyRef(self.policy_id, self.policy_params_hash)

    @property
    def parsed(self) -> dict[str, Any]:
        """The export as JSON values, with turns, edges and attestation."""
        if self.document is None:
            raise GraphKernelError("the slice has no document", sqlstate="22023", word="INVALID_EXPORT")
        value: dict[str, Any] = json.loads(self.document)
        return value

    @property
    def turns(self) -> list[dict[str, Any]]:
        turns: list[dict[str, Any]] = self.parsed["turns"]
        return turns

    @property
    def edges(self) -> list[dict[str, Any]]:
        edges: list[dict[str, Any]] = self.parsed["edges"]
        return edges

    @property
    def policy(self) -> dict[str, Any] | None:
        """The parameters by which the slice was taken, as attested: what takes it again. None where it is not."""
        attestation = self.parsed["attestation"]
        policy: dict[str, Any] | None = None if attestation is None else attestation.get("policy")
        if policy is None:
            return None
        return {key: _of_millionths(value) if key in _IN_MILLIONTHS else value for key, value in policy.items()}


@dataclass(frozen=True)
class SliceFailure:
    """An anchor of a batch that has no slice."""

    anchor_turn_id: str
    word: str
    message: str


class SliceBatch(list[SliceExport]):
    """The slices of a batch in the order of their anchors; `errors` has the anchors that could not be sliced."""

    def __init__(self, slices: Iterable[SliceExport] = (), errors: Sequence[SliceFailure] = ()) -> None:
        super().__init__(slices)
        self.errors = list(errors)


@dataclass(frozen=True)
class Verdict:
    """What `graph_verify` says of a document."""

    valid: bool
    reason: str
    kid: str | None = None
    role: str | None = None
    rls: bool | None = None

    def __bool__(self) -> bool:
        return self.valid


@dataclass
class SliceInfo:
    """What a provenance says of the slice that was searched."""

    slice_id: str
    anchor_turn_id: str
    turn_count: int
    edge_count: int
    policy_ref: PolicyRef
    schema_version: str
    graph_snapshot_hash: str = ""
    admissibility_token: str = field(default="", repr=False)

    def has_valid_token(self) -> bool:
        """Whether a token and all that it covers are there. Whether it is the kernel's, the server alone can say."""
        return all(
            (
                self.slice_id,
                self.anchor_turn_id,
                self.policy_ref.policy_id,
                self.policy_ref.params_hash,
                self.schema_version,
                self.graph_snapshot_hash,
                self.admissibility_token,
            )
        )


@dataclass
class RetrievalProvenance:
    """The record of a search. `document` is what the server signed: store that, and give it back to be checked."""

    query_id: str
    retrieval_mode: Literal["slice", "global"]
    query_text: str
    retrieved_turn_ids: list[str]
    timestamp: str
    elapsed_ms: float
    slice_info: SliceInfo | None = None
    query_embedding_hash: str | None = None
    result_hash: str | None = None
    filters_applied: dict[str, Any] = field(default_factory=dict)
    limit_requested: int = 0
    limit_returned: int = 0
    admissibility_shortfall: bool = False
    document: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def is_admissible(self) -> bool:
        """The four conditions: within a slice, known, with a token, without a shortfall.

        An application can make a provenance that says so of itself. `MemoryRetriever.is_admissible_result` and the
        triggers of the database ask whether the kernel signed it.
        """
        return (
            self.retrieval_mode == "slice"
            and self.slice_info is not None
            and self.slice_info.has_valid_token()
            and not self.admissibility_shortfall
        )

    @property
    def slice_id(self) -> str | None:
        return None if self.slice_info is None else self.slice_info.slice_id

    @property
    def anchor_turn_id(self) -> str | None:
        return None if self.slice_info is None else self.slice_info.anchor_turn_id

    @classmethod
    def create_slice_provenance(
        cls, query_text: str, slice_info: SliceInfo, retrieved_turn_ids: Sequence[str], **fields: Any
    ) -> RetrievalProvenance:
        """One that the application makes itself, unsigned: no trigger of the database takes it."""
        return cls._made("slice", query_text, retrieved_turn_ids, slice_info=slice_info, **fields)

    @classmethod
    def create_global_provenance(
        cls, query_text: str, retrieved_turn_ids: Sequence[str], **fields: Any
    ) -> RetrievalProvenance:
        return cls._made("global", query_text, retrieved_turn_ids, **fields)

    @classmethod
    def _made(
        cls, mode: Literal["slice", "global"], query_text: str, turn_ids: Sequence[str], **fields: Any
    ) -> RetrievalProvenance:
        fields.setdefault("query_id", str(uuid.uuid4()))
        fields.setdefault("timestamp", datetime.now(timezone.utc).isoformat())
        fields.setdefault("elapsed_ms", 0.0)
        fields.setdefault("limit_returned", len(turn_ids))
        return cls(retrieval_mode=mode, query_text=query_text, retrieved_turn_ids=list(turn_ids), **fields)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> RetrievalProvenance:
        """The record that a search returned."""
        try:
            return cls._read(document)
        except (KeyError, TypeError, AttributeError) as error:
            raise GraphKernelError(
                f"not a provenance: {error!r}", sqlstate="22023", word="INVALID_PROVENANCE"
            ) from error

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> RetrievalProvenance:
        info = None
        if document["retrieval_mode"] == "slice":
            ref = document["policy_ref"]
            info = SliceInfo(
                slice_id=document["slice_id"],
                anchor_turn_id=document["anchor_turn_id"],
                turn_count=document["turn_count"],
                edge_count=document["edge_count"],
                policy_ref=PolicyRef(ref["policy_id"], ref["params_hash"]),
                schema_version=document["schema_version"],
                graph_snapshot_hash=document["graph_snapshot_hash"],
                admissibility_token=document["admissibility_token"] or "",
            )
        return cls(
            query_id=document["query_id"],
            retrieval_mode=document["retrieval_mode"],
            query_text=document["query_text"] or "",
            retrieved_turn_ids=list(document["retrieved_turn_ids"]),
            timestamp=document["timestamp"],
            elapsed_ms=document["elapsed_ms"],
            slice_info=info,
            query_embedding_hash=document["query_embedding_hash"],
            result_hash=document["result_hash"],
            filters_applied={k: v for k, v in document["filters_applied"].items() if v is not None},
            limit_requested=document["limit_requested"],
            limit_returned=document["limit_returned"],
            admissibility_shortfall=document["admissibility_shortfall"],
            document=dict(document),
        )


@dataclass
class TrajectoryCoordinates:
    depth: int = 0
    sibling_order: int = 0
    homogeneity: float = 0.5
    temporal: float = 0.5
    complexity: float = 1.0


@dataclass
class SearchResult:
    """A turn that a search found. The conversation of one whose session is not a uuid is a text.

    `similarity` is None where the search was by words alone.
    """

    turn_id: uuid.UUID
    content: str
    role: str
    similarity: float | None
    conversation_id: uuid.UUID | str
    trajectory: TrajectoryCoordinates
    metadata: dict[str, Any] = field(default_factory=dict)


Hit = TypeVar("Hit")


@dataclass
class _Results(Generic[Hit]):
    results: list[Hit]

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: int) -> Hit:
        return self.results[index]


@dataclass
class SliceScopedResults(_Results[SearchResult]):
    """What a search within a slice found, the best first."""

    provenance: RetrievalProvenance


@dataclass
class GlobalResults(_Results[SearchResult]):
    """What a search of the whole graph found, the best first. Never admissible."""

    provenance: RetrievalProvenance


@dataclass
class DualPlaneHit:
    """A turn, an atom or a proposal, with the sum of its reciprocal ranks."""

    plane: Literal["turn", "atom", "proposal"]
    id: str
    content: str
    score: float
    provenance: dict[str, Any]
    result: SearchResult | None = None


@dataclass
class DualPlaneResults(_Results[DualPlaneHit]):
    provenance: RetrievalProvenance


@dataclass(frozen=True)
class Step:
    """A prompt as it was sent. `record` says which turns a model was shown, in order, with hashes of their texts: keep
    it, to show and prove the prompt later. `messages` is what was rendered of it."""

    record: str = field(repr=False)
    messages: Any = field(default=None, repr=False)

    def __repr__(self) -> str:
        try:
            return f"Step(digest={self.digest!r})"
        except (ValueError, LookupError, TypeError):
            return f"Step(record={self.record[:40]!r})"

    @property
    def digest(self) -> str:
        """The SHA-256 that stands for the whole prompt."""
        value: str = json.loads(self.record)["digest"]
        return value

    @property
    def turn_ids(self) -> list[str]:
        """The turns in the order in which they were shown."""
        return [message["turn_id"] for message in json.loads(self.record)["messages"]]


# An export, or the record of a prompt, as they are returned, as text or as the JSON of a column.
Document = Union[SliceExport, Step, str, Mapping[str, Any]]


def document_of(given: Document) -> str:
    """The text of the document, which is what is signed: not fields beside it, which say what they are made to."""
    if isinstance(given, Step):
        return given.record
    if isinstance(given, str):
        return given
    if isinstance(given, Mapping):
        return json.dumps(given)
    if given.document is None:
        raise GraphKernelError(
            "the slice has no document: it was made of single fields, not taken by the kernel",
            sqlstate="22023",
            word="INVALID_EXPORT",
            hint="Take it with SliceClient.get_slice, or read a stored one with SliceExport.from_json.",
        )
    if given != SliceExport.from_json(given.document):
        raise GraphKernelError(
            "the fields of the slice are not those of its document", sqlstate="22023", word="INVALID_EXPORT"
        )
    return given.document


@dataclass(frozen=True)
class PromptTurn:
    """A turn as a model is shown it: its part of the slice, its text, and the message as it was stored.

    `content` is None where the turn is a call without a text: `message` has the call.
    """

    turn_id: str
    part: str
    role: str
    content: str | None
    payload: dict[str, Any] | None
    tokens: int

    @property
    def message(self) -> dict[str, Any]:
        """The message as it was appended."""
        return self.payload or {"role": self.role, "content": self.content or ""}


@dataclass(frozen=True)
class RecalledTurn(PromptTurn):
    """A turn that was recalled, with the hit that it came from."""

    session_id: str
    created_at: datetime | None
    distance: int
    score: float
    seed: str | None


@dataclass
class Recall(_Results[RecalledTurn]):
    """What was recalled, in the order in which a model is shown it, and the slice that it is, to verify and keep."""

    slice: SliceExport | None = None


@dataclass(frozen=True)
class ShownMessage:
    """A message of a recorded prompt, and what became of it: `unchanged`, `changed`, or `gone`."""

    n: int
    turn_id: str
    part: str
    role: str
    state: str
    content: str | None
    payload: dict[str, Any] | None


@dataclass
class SearchQuery:
    text: str
    limit: int = 10
    min_similarity: float | None = None
    min_salience: float | None = None


@dataclass
class SliceScopedQuery(SearchQuery):
    """A query that may find the turns of one slice alone."""

    slice_id: str = ""
    anchor_turn_id: str = ""
    admissible_turn_ids: frozenset[str] = frozenset()
    slice_export: SliceExport | None = field(default=None, repr=False)

    @classmethod
    def from_slice_export(
        cls,
        text: str,
        slice_export: SliceExport,
        limit: int = 10,
        min_similarity: float | None = None,
        min_salience: float | None = None,
    ) -> SliceScopedQuery:
        return cls(
            text=text,
            limit=limit,
            min_similarity=min_similarity,
            min_salience=min_salience,
            slice_id=slice_export.slice_id,
            anchor_turn_id=slice_export.anchor_turn_id,
            admissible_turn_ids=frozenset(slice_export.turn_ids),
            slice_export=slice_export,
        )

    def is_admissible(self, turn_id: TurnId) -> bool:
        return str(turn_id) in self.admissible_turn_ids

    def filter_admissible(self, turn_ids: Iterable[TurnId]) -> list[str]:
        """The turns that are in the slice, in the order given."""
        return [str(turn_id) for turn_id in turn_ids if self.is_admissible(turn_id)]


def can_promote_to_atom(result: SearchResult, provenance: RetrievalProvenance) -> bool:
    """Whether the result is of an admissible search, by what the provenance says of itself.

    What must hold whoever writes is held by a trigger, `graph_require_admissible_result`.
    """
    return provenance.is_admissible and str(result.turn_id) in provenance.retrieved_turn_ids


def verify_replay(original_provenance: RetrievalProvenance, replay_results: SliceScopedResults) -> bool:
    """Whether a search that was made again is that of the provenance: same slice, same embedding, same turns.

    Of searches by words, which have no embedding, the same text.
    """
    replayed = replay_results.provenance
    return (
        original_provenance.slice_id == replayed.slice_id
        and original_provenance.query_embedding_hash == replayed.query_embedding_hash
        and (replayed.query_embedding_hash is not None or original_provenance.query_text == replayed.query_text)
        and set(original_provenance.retrieved_turn_ids) == set(replayed.retrieved_turn_ids)
    )
