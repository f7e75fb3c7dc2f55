package tcp_test

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// Two nodes exchange frames over a socket. Programs hand the network and the
// listener to node.Start instead.
func ExampleNetwork() {
	network := tcp.Network{}
	listener, err := network.Listen("127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	ctx, secret := context.Background(), make([]byte, transport.MinSecret)
	go func() { // node 0 sends back what it gets
		c, err := listener.Accept(ctx, transport.Hello{Run: "example", From: 0}, secret)
		if err != nil {
			panic(err)
		}
		defer c.Close()
		for {
			frame, err := c.ReadFrame()
			if err != nil {
				return
			}
			if err := c.WriteFrame(frame); err != nil {
				return
			}
		}
	}()

	c, err := network.Dial(ctx, listener.Addr(), transport.Hello{Run: "example", From: 1, To: 0}, secret)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	if err := c.WriteFrame(wire.Heartbeat{Arrived: 7}.Frame()); err != nil {
		panic(err)
	}
	frame, err := c.ReadFrame()
	if err != nil {
		panic(err)
	}
	beat, err := wire.ParseHeartbeat(frame)
	fmt.Println(c.Peer().Run, beat.Arrived, err)
	// Output: example 7 <nil>
}
