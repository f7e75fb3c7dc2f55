package mem_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
	"github.com/godwit-ps/godwit/transport/mem"
)

// Two nodes of a process exchange a frame. Who dials where nobody listens is told
// the address.
func ExampleSwitch() {
	network := &mem.Switch{}
	listener, err := network.Listen("node-0")
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	ctx, secret := context.Background(), make([]byte, transport.MinSecret)
	accepted := make(chan transport.Conn)
	go func() {
		c, err := listener.Accept(ctx, transport.Hello{Run: "example", From: 0}, secret)
		if err != nil {
			panic(err)
		}
		accepted <- c
	}()
	hello := transport.Hello{Run: "example", From: 1, To: 0}
	there, err := network.Dial(ctx, "node-0", hello, secret)
	if err != nil {
		panic(err)
	}
	defer there.Close()
	here := <-accepted
	defer here.Close()

	if err := here.WriteFrame(wire.Heartbeat{Arrived: 7}.Frame()); err != nil {
		panic(err)
	}
	frame, err := there.ReadFrame()
	if err != nil {
		panic(err)
	}
	beat, err := wire.ParseHeartbeat(frame)
	fmt.Println(beat.Arrived, err)

	ctx, cancel := context.WithCancel(ctx)
	cancel() // do not wait for somebody to listen
	_, err = network.Dial(ctx, "node-9", hello, secret)
	var d *transport.DialError
	fmt.Println(errors.As(err, &d) && d.Addr == "node-9")
	// Output:
	// 7 <nil>
	// true
}
