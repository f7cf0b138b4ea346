// Subscriber shows the best prices of a pair as they change. It is an example of a client of the
// event stream in Go: Engine.IO over a websocket is a few lines, and book.go keeps the order book.
//
//	go run ./docs/examples/subscriber -address 127.0.0.1:8080 -pair BTC_USDT
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"time"

	"github.com/fasthttp/websocket"
)

func main() {
	address := flag.String("address", "127.0.0.1:8080", "of the exchange")
	pair := flag.String("pair", "BTC_USDT", "whose book is shown")
	flag.Parse()
	for { // a client that comes back starts over
		log.Print(watch(*address, *pair))
		time.Sleep(time.Second)
	}
}

// watch shows the book until the connection ends.
func watch(address, pair string) error {
	conn, _, err := websocket.DefaultDialer.Dial(
		"ws://"+address+"/socket.v2/?EIO=4&transport=websocket", nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	say := func(packet string) error {
		return conn.WriteMessage(websocket.TextMessage, []byte(packet))
	}
	channel, err := json.Marshal("diff." + pair)
	if err != nil {
		return err
	}
	subscribe := `42["subscribe",` + string(channel) + `]`
	// join the main namespace, then ask
	if err := errors.Join(say("40"), say(subscribe)); err != nil {
		return err
	}
	var book Book
	for {
		_, packet, err := conn.ReadMessage()
		switch {
		case err != nil:
			return err
		case string(packet) == "2": // ping
			if err := say("3"); err != nil {
				return err
			}
		case bytes.HasPrefix(packet, []byte("42")): // an event: its name and its argument
			var event [2]json.RawMessage
			if err := json.Unmarshal(packet[2:], &event); err != nil {
				return err
			}
			switch string(event[0]) {
			case `"subscribe.error"`:
				return fmt.Errorf("subscribing: %s", event[1])
			case `"depth.diff"`:
				var d Diff
				if err := json.Unmarshal(event[1], &d); err != nil {
					return err
				}
				if err := book.Apply(&d); err != nil {
					log.Print(err)
					if err := say(subscribe); err != nil {
						return err
					}
				} else if book.Known {
					buy, sell := book.Best()
					fmt.Println(book.UpdateID, "buy", buy, "sell", sell)
				}
			}
		}
	}
}
