#!/usr/bin/env python3
"""relay.py SOCKET: relays a loopback port, which it prints, to a unix socket, as JDBC knows no such sockets."""

import asyncio
import sys


async def copy(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


async def relay(reader, writer):
    from_server, to_server = await asyncio.open_unix_connection(sys.argv[1])
    await asyncio.gather(copy(reader, to_server), copy(from_server, writer))


async def main():
    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
