package terminator

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// limits bound how long a client can hold a connection without using it.
type limits struct {
	// handshake is the time until the first request can be sent.
	handshake time.Duration
	// idle is the time without any byte in either direction.
	idle time.Duration
	// linger is how long a client may take to read the last response and close the connection.
	linger time.Duration
}

var defaultLimits = limits{handshake: 10 * time.Second, idle: 5 * time.Minute, linger: 2 * time.Second}

// handshakeRecord is the first byte of a TLS connection, and of no HTTP request.
const handshakeRecord = 0x16

// plainRefused is the response to plain HTTP.
const plainRefused = "slurmrestd answers only HTTPS here: use https://, and trust the certificates in ca.crt of the " +
	"ConfigMap <RestApi>-restapi-ca. To allow plain HTTP, set spec.tls.plainHTTP of the RestApi to Allowed.\n"

// handle handles a connection until it is closed.
func (f *front) handle(connection net.Conn) {
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(f.limits.handshake))
	peeked := &peeked{Conn: connection, reader: bufio.NewReader(connection)}
	first, err := peeked.reader.Peek(1)
	if err != nil {
		return // a probe, or a client that sends nothing
	}
	var client halfCloser = peeked
	switch {
	case first[0] == handshakeRecord:
		secured := tls.Server(peeked, f.settings)
		if err := secured.HandshakeContext(context.Background()); err != nil { // SIGTERM does not interrupt it
			return // the client knows why
		}
		client = secured
	case !f.plainHTTP:
		f.plain.log(func() { f.log.Warn("refused plain HTTP", "client", connection.RemoteAddr().String()) })
		respond(client, "400 Bad Request", plainRefused)
		f.settle(client)
		return
	default:
		f.plain.log(func() { f.log.Warn("accepted plain HTTP", "client", connection.RemoteAddr().String()) })
	}
	upstream, err := f.upstream.dial(context.Background())
	if err != nil {
		f.log.Error("cannot connect to slurmrestd", "error", err)
		_ = connection.SetDeadline(time.Now().Add(f.limits.handshake))
		respond(client, "503 Service Unavailable", "slurmrestd does not accept connections; try again.\n")
		f.settle(client)
		return
	}
	defer upstream.Close()
	f.forward(client, upstream)
}

// forward copies both directions until slurmrestd has closed its side.
func (f *front) forward(client halfCloser, upstream *net.UnixConn) {
	extend := func() {
		deadline := time.Now().Add(f.limits.idle)
		_ = client.SetDeadline(deadline)
		_ = upstream.SetDeadline(deadline)
	}
	extend()
	var requests sync.WaitGroup
	requests.Go(func() {
		_, _ = io.Copy(upstream, active{client, extend})
		_ = upstream.CloseWrite() // the client sends nothing more, but still reads
	})
	_, _ = io.Copy(client, active{upstream, extend})
	_ = upstream.Close()
	f.finish(client)
	requests.Wait() // only one goroutine may read from the client
	f.settle(client)
}

// finish tells the client that there are no more responses.
func (f *front) finish(client halfCloser) {
	_ = client.SetDeadline(time.Now().Add(f.limits.linger))
	_ = client.CloseWrite()
}

// settle ends a connection so that the client receives the last response: if data of the client were left unread, the
// kernel would discard what the client has not read yet.
func (f *front) settle(client halfCloser) {
	f.finish(client)
	_, _ = io.Copy(io.Discard, client)
}

// respond writes an HTTP response in text.
func respond(client io.Writer, status, text string) {
	_, _ = fmt.Fprintf(client, "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"+
		"Connection: close\r\n\r\n%s", status, len(text), text)
}

// A halfCloser is a connection whose sending side can be closed first.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// peeked is a connection of which some bytes were read ahead.
type peeked struct {
	net.Conn
	reader *bufio.Reader
}

func (p *peeked) Read(buffer []byte) (int, error) { return p.reader.Read(buffer) }

// CloseWrite closes the sending side.
func (p *peeked) CloseWrite() error {
	if connection, ok := p.Conn.(*net.TCPConn); ok {
		return connection.CloseWrite()
	}
	return nil
}

// active calls a function for each read that returns data.
type active struct {
	io.Reader
	extend func()
}

func (a active) Read(buffer []byte) (int, error) {
	count, err := a.Reader.Read(buffer)
	if count > 0 {
		a.extend()
	}
	return count, err
}

// occasional logs at most once a minute.
type occasional struct{ last atomic.Int64 }

func (o *occasional) log(write func()) {
	last, now := o.last.Load(), time.Now().Unix()
	if now-last >= 60 && o.last.CompareAndSwap(last, now) {
		write()
	}
}
