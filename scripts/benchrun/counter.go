package main

import (
	"io"
	"net"
	"sync/atomic"
)

// counter is a socket that passes everything on to another one, and counts what comes back.
type counter struct {
	listener net.Listener
	sent     atomic.Int64 // bytes
}

func countAt(at, to string) (*counter, error) {
	l, err := net.Listen("unix", at)
	if err != nil {
		return nil, err
	}
	c := &counter{listener: l}
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go c.pass(from, to)
		}
	}()
	return c, nil
}

// pass ends when either side does.
func (c *counter) pass(from net.Conn, to string) {
	defer from.Close()
	server, err := net.Dial("unix", to)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, from)
		_ = server.Close()
	}()
	_, _ = io.Copy(io.MultiWriter(from, c), server)
}

// Write counts.
func (c *counter) Write(p []byte) (int, error) {
	c.sent.Add(int64(len(p)))
	return len(p), nil
}

func (c *counter) close() { _ = c.listener.Close() }
