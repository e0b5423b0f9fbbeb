"""`SliceClient`: slices, policies and tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._policies import check_policy_id, policy_sql, policy_text
from .._sql import EQ
from ..errors import GraphKernelError
from ..types import (
    Document,
    Policy,
    PolicyRef,
    SliceBatch,
    SliceExport,
    SliceFailure,
    SliceInfo,
    TurnId,
    Verdict,
    document_of,
    turn_uuid,
)
from .database import Client, Database, Source


class SliceClient(Client):
    """Takes slices. `base_url` is the address of the database, `postgresql://…`; see `Database` for the rest."""

    def __init__(
        self,
        base_url: Source | Database | None = None,
        timeout: float | None = None,
        *,
        graph: str | None = None,
        schema: str | None = None,
    ) -> None:
        super().__init__(base_url, timeout=timeout, graph=graph, schema=schema)

    async def get_slice(self, anchor_turn_id: TurnId, policy_ref: Policy | None = None) -> SliceExport:
        """The slice at this turn. Its token is None where the transaction that asks has changed the turns itself."""
        policy, parameter = policy_sql(policy_ref)
        row = await self.database.fetch_one(
            f"SELECT {{gk}}graph_slice(%s::pg_catalog.uuid, {policy})::pg_catalog.text AS slice",
            (turn_uuid(anchor_turn_id), parameter),
        )
        export = SliceExport.from_json(row["slice"])
        check_policy_id(policy_ref, export.policy_id)
        return export

    async def get_slice_batch(self, anchor_turn_ids: Sequence[TurnId], policy_ref: Policy | None = None) -> SliceBatch:
        """The slices at these turns, of one snapshot. What could not be sliced is in `errors` of the result."""
        policy, parameter = policy_sql(policy_ref)
        anchors: list[Any] = []
        errors = []
        for anchor in anchor_turn_ids:
            try:
                anchors.append(turn_uuid(anchor))
            except GraphKernelError as error:
                errors.append(SliceFailure(str(anchor), error.word or "", error.message))
        rows = await self.database.fetch(
            "SELECT anchor_turn_id::pg_catalog.text AS anchor, slice::pg_catalog.text AS slice, error_code, error"
            f" FROM {{gk}}graph_slices(%s::pg_catalog.uuid[], {policy})",
            (anchors, parameter),
        )
        slices = []
        for row in rows:
            if row["slice"] is None:
                errors.append(SliceFailure(row["anchor"], row["error_code"], row["error"]))
            else:
                slices.append(SliceExport.from_json(row["slice"]))
                check_policy_id(policy_ref, slices[-1].policy_id)
        return SliceBatch(slices, errors)

    async def register_policy(self, *, name: str | None = None, **parameters: Any) -> PolicyRef:
        """Registers a policy for good; parameters that are not given are those of `default`."""
        row = await self.database.fetch_one(
            "SELECT policy_id, params_hash FROM {gk}graph_policy_register(%s::{gk}slice_policy, %s::pg_catalog.text)",
            (policy_text(parameters), name),
        )
        return PolicyRef(row["policy_id"], row["params_hash"])

    async def list_policies(self) -> list[PolicyRef]:
        rows = await self.database.fetch(
            "SELECT DISTINCT policy_id, params_hash FROM {gk}graph_policies ORDER BY policy_id, params_hash"
        )
        return [PolicyRef(row["policy_id"], row["params_hash"]) for row in rows]

    async def verify(self, export: Document) -> Verdict:
        """Whether the whole export, or record of a prompt, is the kernel's, and if not, why."""
        row = await self.database.fetch_one(
            "SELECT valid, reason, kid, role, rls FROM {gk}graph_verify(%s::pg_catalog.json)", (document_of(export),)
        )
        return Verdict(**row)

    async def verify_token(self, slice_export: SliceExport | SliceInfo) -> bool:
        """Whether the token is the kernel's. Of an export with its document all of it is checked, as by `verify`."""
        if isinstance(slice_export, SliceExport) and slice_export.document is not None:
            # The fields may have been changed since they were read.
            if slice_export != SliceExport.from_json(slice_export.document):
                return False
            return (await self.verify(slice_export)).valid
        row = await self.database.fetch_one(
            "SELECT {gk}graph_verify_token(%s::pg_catalog.text, %s::pg_catalog.text, %s::pg_catalog.uuid,"
            " %s::pg_catalog.text, %s::pg_catalog.text, %s::pg_catalog.text, %s::pg_catalog.text)"
            " AS valid",
            (
                slice_export.admissibility_token,
                slice_export.slice_id,
                turn_uuid(slice_export.anchor_turn_id),
                slice_export.policy_ref.policy_id,
                slice_export.policy_ref.params_hash,
                slice_export.graph_snapshot_hash,
                slice_export.schema_version,
            ),
        )
        return row["valid"] is True

    async def proof(self, document: Document) -> str:
        """A signed statement about an export or record, which `offline.verify_proof` checks without a database."""
        row = await self.database.fetch_one(
            "SELECT {gk}graph_proof(%s::pg_catalog.json)::pg_catalog.text AS proof", (document_of(document),)
        )
        proof: str = row["proof"]
        return proof

    async def public_key(self, kid: str | None = None) -> str:
        """The public key of an epoch, as PEM; of the one that signs now unless another is named."""
        rows = await self.database.fetch(
            "SELECT public_key FROM graph_kernel.proof_keys"
            f" WHERE CASE WHEN %(kid)s::pg_catalog.text IS NULL THEN state {EQ} 'active' ELSE kid {EQ} %(kid)s END",
            {"kid": kid},
        )
        if not rows:
            named = "that signs now" if kid is None else repr(kid)
            raise GraphKernelError(f"there is no key {named}", sqlstate="42704")
        key: str = rows[0]["public_key"]
        return key

    async def health(self) -> dict[str, Any]:
        row = await self.database.fetch_one("SELECT {gk}graph_api_health() AS health")
        health: dict[str, Any] = row["health"]
        return health
