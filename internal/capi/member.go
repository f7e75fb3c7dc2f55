package capi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	ctcp "github.com/godwit-ps/godwit/coord/tcp"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// member makes the cluster one node of a run of several processes, and returns what starts
// it. If this process is to coordinate the run, it does so from now on.
func (c *Cluster) member(m Member) (start func(context.Context) error, err error) {
	if m.Rank < 0 || m.Rank >= c.nodes {
		return nil, wrong("rank %d of a run of %d nodes", m.Rank, c.nodes)
	}
	if err := coord.CheckRun(m.Run); err != nil {
		return nil, wrong("%v", err)
	}
	var server *ctcp.Server
	if m.Serve {
		ln, err := net.Listen("tcp", m.Coordinator)
		if err != nil {
			return nil, fmt.Errorf("to coordinate the run: %w", err)
		}
		if server, err = ctcp.Serve(ln, coord.Config{Run: m.Run, Nodes: c.nodes}, m.Token, godwit.NodeID(m.Rank)); err != nil {
			_ = ln.Close()
			return nil, wrong("%v", err)
		}
		m.Coordinator = server.Addr()
		c.address = m.Coordinator
	}
	return func(ctx context.Context) error {
		end, err := c.join(ctx, m)
		if err != nil {
			if server != nil {
				_ = server.Close(ctx)
			}
			return err
		}
		c.end = func(ctx context.Context) error {
			err := end(ctx)
			if server != nil {
				err = errors.Join(err, server.Close(ctx))
			}
			return err
		}
		return nil
	}, nil
}

// join joins the run and starts the node.
func (c *Cluster) join(ctx context.Context, m Member) (end func(context.Context) error, err error) {
	host := m.Advertise
	if host == "" {
		if host, err = reaches(m.Coordinator); err != nil {
			return nil, err
		}
	}
	cfg := c.cfg
	cfg.Run, cfg.Network = m.Run, tcp.Network{}
	if cfg.Listener, err = cfg.Network.Listen(net.JoinHostPort(host, "0")); err != nil {
		return nil, fmt.Errorf("other nodes are to reach this one by %s: %w: choose another address (advertise)", host, err)
	}
	run := coord.Config{Run: m.Run, Nodes: c.nodes, Addr: cfg.Listener.Addr(), Fingerprint: cfg.Fingerprint(), Join: time.Duration(m.JoinMs) * time.Millisecond}
	if cfg.Session, err = ctcp.Join(ctx, m.Coordinator, m.Token, godwit.NodeID(m.Rank), run); err != nil {
		return nil, errors.Join(err, cfg.Listener.Close())
	}
	ctx, cancel := context.WithTimeout(ctx, coord.DefaultJoin)
	defer cancel()
	n, err := node.Start(ctx, cfg)
	if err != nil {
		cfg.Session.Fail(err)
		return nil, errors.Join(err, cfg.Session.Close(ctx), cfg.Listener.Close())
	}
	c.here, c.rank = []*node.Node{n}, m.Rank
	n.Serve(c.answer)
	return func(ctx context.Context) error {
		return errors.Join(n.Close(ctx), cfg.Session.Close(ctx), cfg.Listener.Close())
	}, nil
}

// reaches returns the address by which this machine reaches another. Nothing is sent for it.
func reaches(addr string) (host string, err error) {
	c, err := net.Dial("udp", addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	host, _, err = net.SplitHostPort(c.LocalAddr().String())
	return host, err
}

// Address returns where the run is coordinated, if this process does it; else nothing.
func (c *Cluster) Address() string { return c.address }
