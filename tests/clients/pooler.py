"""PgBouncer in transaction mode, with one connection that two clients share. The database is that of the examples."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time

import asyncpg
import psycopg

ANCHOR = "a9ad8365-bc0a-5da2-93e6-e37e99d95d9c"
PORT = "6433"

program = shutil.which("pgbouncer", path="/usr/sbin:/usr/local/bin")
if program is None:
    print("SKIPPED: clients: PgBouncer: it is not installed")
    sys.exit()

folder = tempfile.mkdtemp(dir="/tmp")
with open(f"{folder}/users", "w") as users:
    users.write(f'"{os.environ["PGUSER"]}" ""\n')
with open(f"{folder}/ini", "w") as settings:
    settings.write(
        f"""[databases]
* = host={os.environ["PGHOST"]} port={os.environ["PGPORT"]}
[pgbouncer]
pool_mode = transaction
default_pool_size = 1
listen_port = {PORT}
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users
"""
    )
# It refuses to run as root.
owner = os.environ["GRAPH_KERNEL_SERVER_USER"] if os.geteuid() == 0 else None
if owner:
    for path in (folder, f"{folder}/users", f"{folder}/ini"):
        shutil.chown(path, owner)
pooler = subprocess.Popen([program, f"{folder}/ini"], user=owner, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


def check_psycopg():
    options = {"host": folder, "port": PORT, "autocommit": True}
    clients = [psycopg.connect(**options, prepare_threshold=None) for _ in range(2)]
    for _ in range(8):  # more often than the five times after which psycopg prepares a statement
        for client in clients:
            query = "SELECT count(*) FROM graph_slice_turns(%s::uuid, %s::slice_policy)"
            assert client.execute(query, (ANCHOR, "focused")).fetchone() == (28,)
    for client in clients:
        client.close()


async def check_asyncpg():
    clients = [await asyncpg.connect(host=folder, port=PORT, statement_cache_size=0) for _ in range(2)]
    for _ in range(3):
        for client in clients:
            assert await client.fetchval("SELECT count(*) FROM graph_slice_turns($1, $2)", ANCHOR, "focused") == 28
    for client in clients:
        await client.close()


try:
    start = time.monotonic()
    while not os.path.exists(f"{folder}/.s.PGSQL.{PORT}"):
        assert pooler.poll() is None and time.monotonic() - start < 30, "PgBouncer does not start"
        time.sleep(0.01)
    check_psycopg()
    asyncio.run(check_asyncpg())
finally:
    pooler.kill()
    pooler.wait()
    shutil.rmtree(folder)
