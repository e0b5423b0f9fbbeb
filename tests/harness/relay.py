#!/usr/bin/env python3
"""relay.py SOCKET: relays a loopback port, which it prints, to a unix socket, as JDBC knows no such sockets.

Every account can connect to a port, and the server trusts whoever reaches its socket: others are turned away.
"""

import asyncio
import os
import sys


def is_own(writer):
    """Whether the other end of a loopback connection is a socket of this account."""
    (_, here), (_, there) = writer.get_extra_info("sockname"), writer.get_extra_info("peername")
    # A client may reach it through a socket of either family.
    for family in ["tcp", "tcp6"]:
        with open(f"/proc/net/{family}") as sockets:
            for line in list(sockets)[1:]:
                fields = line.split()
                ends = [int(address.split(":")[1], 16) for address in fields[1:3]]
                if ends == [there, here]:
                    return int(fields[7]) == os.getuid()
    return False


async def copy(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


async def relay(reader, writer):
    if not is_own(writer):
        writer.close()
        return
    from_server, to_server = await asyncio.open_unix_connection(sys.argv[1])
    await asyncio.gather(copy(reader, to_server), copy(from_server, writer))


async def main():
    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
