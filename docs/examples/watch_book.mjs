// Shows the best prices of a pair as they change:
//
//	npm install socket.io-client
//	node watch_book.mjs http://127.0.0.1:8080 BTC_USDT
import { io } from "socket.io-client";
import { LocalBook } from "./local_book.mjs";

const [address = "http://127.0.0.1:8080", pair = "BTC_USDT"] = process.argv.slice(2);
const socket = io(address, { path: "/socket.v2/" });
socket.on("connect_error", (error) => console.error(`${address}: ${error.message}`));
socket.on("subscribe.error", (error) => {
	console.error(`${error.channel}: ${error.message}`);
	process.exit(1);
});
const book = new LocalBook(socket, pair);
book.onChange = () => console.log(book.updateId, "buy", book.best("buy") ?? "-", "sell", book.best("sell") ?? "-");
