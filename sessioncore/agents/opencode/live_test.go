package opencode

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/search"
)

// writtenText is a text that a client writes into a message. Its times are numbers of a liveClient's clock.
type writtenText struct {
	session   string
	text      string
	begun     int64 // before the transaction that wrote it
	written   int64 // after that transaction
	replacing int64 // before the transaction that took it away; 0 if there was none
	replaced  int64 // after that transaction
}

// mayBeSeen reports whether a reader that was busy from one time to another may have seen the text.
func (w *writtenText) mayBeSeen(start, end int64) bool {
	return w.begun <= end && (w.replaced == 0 || w.replaced >= start)
}

// mustBeSeen reports whether the text was there all the time from one time to another.
func (w *writtenText) mustBeSeen(start, end int64) bool {
	isWritten := w.written != 0 && w.written <= start
	return isWritten && (w.replacing == 0 || w.replacing >= end)
}

// liveClient is a client that changes a message of each session in turn, all the time. It keeps which text was there
// at which time.
type liveClient struct {
	conn     *sqlite3.Conn
	sessions []string
	clock    atomic.Int64

	mu    sync.Mutex // guards texts
	texts []*writtenText
}

// write writes a text into the message of a session in one transaction, as the client does: its row, its session's, and the
// number of its event. Each third text takes the message away, so that another one brings it back. replaced is the last text
// of the session, nil for none.
func (c *liveClient) write(n int, replaced *writtenText) (*writtenText, error) {
	session := c.sessions[n%len(c.sessions)]
	statements := []string{
		"BEGIN",
		fmt.Sprintf("UPDATE session SET time_updated = %d WHERE id = '%s'", 5_000+n, session),
		fmt.Sprintf("INSERT OR REPLACE INTO event_sequence VALUES ('%s', %d)", session, n),
	}
	message := "msg_live_" + session
	text := &writtenText{session: session, text: fmt.Sprintf("bittern number %d", n), begun: c.clock.Add(1)}
	if n%3 == 2 {
		text = nil
		statements = append(statements,
			fmt.Sprintf("DELETE FROM part WHERE message_id = '%s'", message),
			fmt.Sprintf("DELETE FROM message WHERE id = '%s'", message))
	} else {
		statements = append(statements,
			fmt.Sprintf(`INSERT OR REPLACE INTO message VALUES ('%s', '%s', 2000, '{"role":"user","time":{"created":2000}}')`, message, session),
			fmt.Sprintf(`INSERT OR REPLACE INTO part VALUES ('prt_%s', '%[1]s', '%s', '{"type":"text","text":"%s"}')`, message, session, text.text))
	}
	c.mu.Lock()
	if text != nil {
		c.texts = append(c.texts, text)
	}
	if replaced != nil {
		replaced.replacing = c.clock.Add(1)
	}
	c.mu.Unlock()
	err := c.conn.Exec(strings.Join(append(statements, "COMMIT"), ";\n"))
	c.mu.Lock()
	defer c.mu.Unlock()
	if text != nil {
		text.written = c.clock.Add(1)
	}
	if replaced != nil {
		replaced.replaced = c.clock.Add(1)
	}
	return text, err
}

// writePause is the time between two transactions of a liveClient.
const writePause = 5 * time.Millisecond

// run writes until done is closed.
func (c *liveClient) run(t *testing.T, done <-chan struct{}) {
	last := map[string]*writtenText{}
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		default:
		}
		session := c.sessions[n%len(c.sessions)]
		text, err := c.write(n, last[session])
		if !assert.NoError(t, err) {
			return
		}
		last[session] = text
		time.Sleep(writePause)
	}
}

// check compares the hits of a search that was busy from one time to another with the texts of that time.
func (c *liveClient) check(t *testing.T, found *search.Result, start, end int64) {
	require.Empty(t, found.Unread)
	isHit := map[string]bool{}
	for i := range found.Hits {
		hit := &found.Hits[i]
		isHit[hit.ID+" "+hit.Line] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maySee := map[string]bool{}
	for _, w := range c.texts {
		key := w.session + " " + w.text
		if w.mayBeSeen(start, end) {
			maySee[key] = true
		}
		if w.mustBeSeen(start, end) {
			require.True(t, isHit[key], "it was there all the time: %s", key)
		}
	}
	for key := range isHit {
		require.True(t, maySee[key], "it was there at no time of the search: %s", key)
	}
}

// TestSearchLive: a search beside a client that writes all the time, by a scan of all rows, finds each entry that is there from
// its begin to its end, and none that is not there meanwhile. Once the client stops, it finds what is there.
func TestSearchLive(t *testing.T) {
	sessiontest.NotUnderRace(t) // it would take minutes
	if testing.Short() {
		t.Skip("it takes seconds, as the database is opened anew for each session")
	}
	const many = 600 // so many that a scan tells of the last ones
	d := newDatabase(t, indexed)
	client := &liveClient{conn: d.conn}
	require.NoError(t, d.conn.Exec("BEGIN"))
	for i := range many {
		id := fmt.Sprintf("ses_%03d", i)
		text := "Count the herons"
		if i%50 == 49 {
			text = "a bittern of the begin"
			client.texts = append(client.texts, &writtenText{session: id, text: text, written: client.clock.Add(1)})
		}
		d.session(id, "Herons", many-i)
		d.message(id, "msg_"+id, 1001, "user", text)
		client.sessions = append(client.sessions, id)
	}
	require.NoError(t, d.conn.Exec("COMMIT; PRAGMA wal_autocheckpoint = 400"))
	h, files := d.billedHome()
	searcher := search.New(search.SearchedSessions{Files: files, Agents: func() []string { return []string{"opencode"} }})
	q, err := search.ParseQuery("bittern")
	require.NoError(t, err)
	checkedSearch := func() {
		start := client.clock.Add(1)
		found, err := searcher.Search(t.Context(), q)
		end := client.clock.Add(1)
		require.NoError(t, err)
		client.check(t, found, start, end)
	}

	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { client.run(t, done) })
	stop := sync.OnceFunc(func() {
		close(done)
		running.Wait()
	})
	defer stop()
	checkedSearch()
	require.Less(t, len(h.sizes), many, "a scan told of others that they have no hit")
	stop()
	checkedSearch()
}
