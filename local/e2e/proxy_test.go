package e2e_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"
)

// proxy stands between the driver and PostgreSQL and breaks a connection when a
// chosen statement comes by. It reads only as much of the protocol as it needs
// to know where messages and statements begin and end.
type proxy struct {
	listener net.Listener
	server   string
	sessions sync.WaitGroup

	mu       sync.Mutex
	cuts     []*cut
	open     map[net.Conn]bool
	refusing bool
	refused  int
}

// cut breaks the connection that carries a statement, once.
type cut struct {
	statement string // a part of its text
	when      moment
	outage    bool // all connections break, and new ones are refused
	done      chan struct{}
}

// moment is when a connection breaks.
type moment string

const (
	// afterCommit: the server has done the statement and said so, and the
	// client does not hear it.
	afterCommit moment = "after it committed"
	// beforeArrival: the server never sees the statement.
	beforeArrival moment = "before it arrived"
)

// newProxy returns a proxy before the world's server, and the world's URL
// through it.
func newProxy(w *world) (*proxy, string) {
	w.Helper()
	address, err := url.Parse(w.url)
	w.must(err)
	var config net.ListenConfig
	listener, err := config.Listen(w.ctx, "tcp4", "127.0.0.1:0")
	w.must(err)
	p := &proxy{listener: listener, server: address.Host, open: map[net.Conn]bool{}}
	p.sessions.Go(p.accept)
	w.Cleanup(func() {
		_ = listener.Close() // its goroutine sees it
		p.cutAll()
		p.sessions.Wait()
	})
	address.Host = listener.Addr().String()
	values := address.Query()
	values.Set("sslmode", "disable")
	address.RawQuery = values.Encode()
	return p, address.String()
}

// arm makes the next statement with this text in it break its connection.
func (p *proxy) arm(statement string, when moment) *cut {
	return p.add(&cut{statement: statement, when: when, done: make(chan struct{})})
}

// armOutage makes the next statement with this text in it break all
// connections. New ones are refused until accepting is called.
func (p *proxy) armOutage(statement string, when moment) *cut {
	return p.add(&cut{statement: statement, when: when, outage: true, done: make(chan struct{})})
}

func (p *proxy) add(c *cut) *cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cuts = append(p.cuts, c)
	return c
}

// accepting ends an outage.
func (p *proxy) accepting() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = false
}

// refusals returns how many connections were refused.
func (p *proxy) refusals() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// cutAll breaks all connections and refuses new ones.
func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = true
	for conn := range p.open {
		_ = conn.Close() // its session sees it
	}
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // the test is over
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil || !p.admit(client, server) {
			_ = client.Close() // that is the refusal
			if server != nil {
				_ = server.Close()
			}
			continue
		}
		s := &session{proxy: p, client: client, server: server, texts: map[string]string{}}
		p.sessions.Go(s.requests)
		p.sessions.Go(s.answers)
	}
}

func (p *proxy) admit(client, server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refusing {
		p.refused++
		return false
	}
	p.open[client], p.open[server] = true, true
	return true
}

// match returns the cut for a statement that is about to be executed, and
// disarms it.
func (p *proxy) match(text string) *cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range p.cuts {
		if strings.Contains(text, c.statement) {
			p.cuts = append(p.cuts[:i:i], p.cuts[i+1:]...)
			return c
		}
	}
	return nil
}

// session is one connection through the proxy.
type session struct {
	proxy          *proxy
	client, server net.Conn
	texts          map[string]string // of prepared statements, by name

	mu       sync.Mutex
	cut      *cut // whose statement's answers are being withheld
	withheld []byte
	failed   bool // the server refused the statement
}

// message is one message of the protocol, with its head.
type message struct {
	kind byte // zero for the first of a client, which has none
	all  []byte
}

func (m message) body() []byte { return m.all[5:] }

var errTooLong = errors.New("message of more than 64 MiB")

func readMessage(r io.Reader, first bool) (message, error) {
	head := make([]byte, 5)
	if first {
		head = head[1:]
	}
	if _, err := io.ReadFull(r, head); err != nil {
		return message{}, err
	}
	size := binary.BigEndian.Uint32(head[len(head)-4:])
	if size < 4 || size > 64<<20 {
		return message{}, errTooLong
	}
	m := message{all: append(head, make([]byte, size-4)...)}
	if !first {
		m.kind = head[0]
	}
	_, err := io.ReadFull(r, m.all[len(head):])
	return m, err
}

// requests carries what the client sends.
func (s *session) requests() {
	defer s.close()
	r := bufio.NewReader(s.client)
	for first := true; ; first = false {
		m, err := readMessage(r, first)
		if err != nil {
			return
		}
		if c := s.executed(m); c != nil {
			if c.when == beforeArrival {
				s.sever(c)
				return
			}
			s.mu.Lock()
			s.cut, s.withheld, s.failed = c, nil, false
			s.mu.Unlock()
		}
		if _, err := s.server.Write(m.all); err != nil {
			return
		}
	}
}

// executed returns the cut for the statement that m executes, if there is one.
func (s *session) executed(m message) *cut {
	switch m.kind {
	case 'P':
		var parse pgproto3.Parse
		if parse.Decode(m.body()) == nil {
			s.texts[parse.Name] = parse.Query
		}
	case 'B':
		var bind pgproto3.Bind
		if bind.Decode(m.body()) == nil {
			return s.proxy.match(s.texts[bind.PreparedStatement])
		}
	case 'Q':
		return s.proxy.match(string(m.body()))
	}
	return nil
}

// answers carries what the server says, but not what it says to a statement
// that is to have an unknown outcome. ReadyForQuery ends an answer: by then the
// statement has committed, unless there was an error.
func (s *session) answers() {
	defer s.close()
	r := bufio.NewReader(s.server)
	for {
		m, err := readMessage(r, false)
		if err != nil {
			return
		}
		out, c := s.withhold(m)
		if c != nil {
			s.sever(c)
			return
		}
		if _, err := s.client.Write(out); err != nil {
			return
		}
	}
}

// withhold returns what the client may hear of m, and the cut once it is time
// for it. A statement that failed has not happened: the cut is for its next try.
func (s *session) withhold(m message) ([]byte, *cut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut == nil {
		return m.all, nil
	}
	s.withheld = append(s.withheld, m.all...)
	s.failed = s.failed || m.kind == 'E'
	switch {
	case m.kind != 'Z':
		return nil, nil
	case !s.failed:
		return nil, s.cut
	}
	s.proxy.add(s.cut)
	out := s.withheld
	s.cut, s.withheld = nil, nil
	return out, nil
}

// sever breaks the connection for a cut and tells the test.
func (s *session) sever(c *cut) {
	if c.outage {
		s.proxy.cutAll()
	}
	s.close()
	close(c.done)
}

func (s *session) close() {
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	for _, conn := range []net.Conn{s.client, s.server} {
		_ = conn.Close() // the second time it is closed already
		delete(s.proxy.open, conn)
	}
}
