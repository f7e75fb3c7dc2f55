package capi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/etcd"
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
	if (m.Coordinator == "") == (len(m.Etcd) == 0) || m.Serve && len(m.Etcd) > 0 {
		return nil, wrong("a node meets the others by a coordinator, which one process serves, or by an etcd")
	}
	secure, err := m.TLS.Config()
	if err != nil {
		return nil, wrong("%v", err)
	}
	var server *ctcp.Server
	if m.Serve {
		ln, err := net.Listen("tcp", m.Coordinator)
		if err != nil {
			return nil, fmt.Errorf("to coordinate the run: %w", err)
		}
		if secure != nil {
			ln = tls.NewListener(ln, secure)
		}
		if server, err = ctcp.Serve(ln, coord.Config{Run: m.Run, Nodes: c.nodes}, m.Token, godwit.NodeID(m.Rank)); err != nil {
			_ = ln.Close()
			return nil, wrong("%v", err)
		}
		m.Coordinator = server.Addr()
		c.address = m.Coordinator
	}
	return func(ctx context.Context) error {
		end, err := c.join(ctx, m, secure)
		if err != nil {
			if server != nil {
				_ = server.Close(ctx)
			}
			return err
		}
		c.end = func(ctx context.Context) error {
			err := end(ctx)
			if server != nil {
				ctx, cancel := context.WithTimeout(ctx, closeTime)
				defer cancel()
				err = errors.Join(err, server.Close(ctx))
			}
			return err
		}
		return nil
	}, nil
}

// join joins the run and starts the node.
func (c *Cluster) join(ctx context.Context, m Member, secure *tls.Config) (end func(context.Context) error, err error) {
	listen, err := m.listens()
	if err != nil {
		return nil, err
	}
	cfg := c.cfg
	cfg.Run, cfg.Network = m.Run, tcp.Network{TLS: secure}
	if cfg.Listener, err = cfg.Network.Listen(listen); err != nil {
		return nil, fmt.Errorf("this node is to listen at %s: %w: choose another address (listen, or advertise; in Python the variables GODWIT_LISTEN and GODWIT_ADVERTISE)", listen, err)
	}
	told, err := m.told(cfg.Listener.Addr())
	if err != nil {
		return nil, errors.Join(err, cfg.Listener.Close())
	}
	c.mu.Lock()
	c.reached = told
	c.mu.Unlock()
	run := coord.Config{Run: m.Run, Nodes: c.nodes, Addr: told, Fingerprint: c.fingerprint(), Join: time.Duration(m.JoinMs) * time.Millisecond}
	if len(m.Etcd) > 0 {
		cfg.Session, err = etcd.Access{Endpoints: m.Etcd, TLS: secure, Token: m.Token}.JoinAs(ctx, godwit.NodeID(m.Rank), run)
	} else {
		cfg.Session, err = ctcp.Join(ctx, secure, m.Coordinator, m.Token, godwit.NodeID(m.Rank), run)
	}
	if errors.Is(err, coord.ErrMissing) {
		err = fmt.Errorf("%w: all ranks have to begin the tables %q (in Python the first access to one does it)", err, names(checkpoint.Tables(cfg.Model)))
	}
	if err != nil {
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
		failed := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(failed)
			cfg.Session.Fail(context.Cause(ctx))
		})
		if ctx.Err() == nil {
			c.part(ctx)
		}
		err := n.Close(ctx)
		if !stop() {
			<-failed
		}
		return errors.Join(err, cfg.Session.Close(ctx), cfg.Listener.Close())
	}, nil
}

// listens returns where the node listens.
func (m *Member) listens() (addr string, err error) {
	if m.Listen != "" {
		return m.Listen, nil
	}
	host := m.Advertise
	if h, _, err := net.SplitHostPort(m.Advertise); err == nil && h != "" {
		return "", wrong("the node advertises %s, with a port: say where it listens, too (in Python the variable GODWIT_LISTEN)", m.Advertise)
	}
	if host == "" {
		if host, err = reaches(m.meets()); err != nil {
			return "", err
		}
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), "0"), nil
}

// told returns by which address others reach the node, which listens at one.
func (m *Member) told(listener string) (string, error) {
	if m.Advertise != "" && m.Listen != "" {
		if _, _, err := net.SplitHostPort(m.Advertise); err == nil {
			return m.Advertise, nil
		}
		_, port, err := net.SplitHostPort(listener)
		return net.JoinHostPort(strings.Trim(m.Advertise, "[]"), port), err
	}
	if host, _, err := net.SplitHostPort(listener); err == nil && net.ParseIP(host).IsUnspecified() {
		return "", wrong("a node that listens on all addresses (%s) must say by which one the others reach it (advertise; in Python the variable GODWIT_ADVERTISE)", listener)
	}
	return listener, nil
}

// meets returns an address that all nodes reach.
func (m *Member) meets() string {
	if len(m.Etcd) == 0 {
		return m.Coordinator
	}
	if _, addr, found := strings.Cut(m.Etcd[0], "://"); found {
		return addr
	}
	return m.Etcd[0]
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

// Reached returns the address by which other nodes reach this one, once it listens there; before, and of a process that
// is all of the run, nothing.
func (c *Cluster) Reached() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reached
}
