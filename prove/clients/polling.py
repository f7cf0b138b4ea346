"""Two subscribers of the event stream, by python-socketio: one polls only, one moves to a websocket.

    /usr/bin/python3 polling.py ADDRESS PAIR

They receive trades until standard input ends. Then it prints, of each, how often it connected, how
many trades it received, and its transport.
"""
import asyncio, json, sys
import socketio

ADDRESS, PAIR = sys.argv[1:]


class Subscriber:
    def __init__(self, transports):
        self.transports, self.connects, self.trades = transports, 0, 0
        self.client = socketio.AsyncClient(reconnection_delay=0.05, reconnection_delay_max=0.2)
        self.client.on("connect", self.connected)
        self.client.on("trades", self.traded)

    async def connected(self):
        self.connects += 1
        await self.client.emit("subscribe", f"trades.{PAIR}")

    async def traded(self, trade):
        self.trades += 1

    async def run(self):
        await self.client.connect(ADDRESS, socketio_path="socket.v2", transports=self.transports)


async def main():
    everyone = {"polling": Subscriber(["polling"]), "upgraded": Subscriber(None)}
    for x in everyone.values():
        await x.run()
    print("connected", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(json.dumps({name: [x.connects, x.trades, x.client.transport()]
                      for name, x in everyone.items()}))
    for x in everyone.values():
        await x.client.disconnect()


asyncio.run(main())
