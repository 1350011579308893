package main

import (
	"io"
	"net"
	"sync/atomic"
)

// counter is a socket that passes everything on to another one, and counts what comes back.
type counter struct {
	net.Listener
	sent atomic.Int64 // bytes
}

func countAt(at, to string) (*counter, error) {
	l, err := net.Listen("unix", at)
	c := &counter{Listener: l}
	go func() {
		for err == nil {
			var from, server net.Conn
			if from, err = l.Accept(); err != nil {
				return
			}
			if server, err = net.Dial("unix", to); err != nil {
				return
			}
			go c.pass(from, server, server)
			go c.pass(server, io.MultiWriter(from, c), from)
		}
	}()
	return c, err
}

// pass ends the other direction when its own ends.
func (c *counter) pass(from net.Conn, to io.Writer, end net.Conn) {
	_, _ = io.Copy(to, from)
	_ = end.Close()
}

// Write counts.
func (c *counter) Write(p []byte) (int, error) {
	c.sent.Add(int64(len(p)))
	return len(p), nil
}
