package report

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

// counting is a storage that counts the bytes that are read.
type counting struct {
	storage.Storage
	read atomic.Int64
}

func (c *counting) Open(name string) (storage.Object, error) {
	obj, err := c.Storage.Open(name)
	return countingObject{obj, &c.read}, err
}

type countingObject struct {
	storage.Object
	read *atomic.Int64
}

func (o countingObject) ReadAt(p []byte, off int64) (int, error) {
	o.read.Add(int64(len(p)))
	return o.Object.ReadAt(p, off)
}

// answer is the line of an answer with a long text, whose members are in any order and spelling.
func answer(rnd *rand.Rand, n, text int) string {
	members := []string{
		`"content":[{"type":"text","text":"` + strings.Repeat(`a \" `, text) + `"}]`, []string{`"provider" : "p"`, `"provider":"p"`}[rnd.IntN(2)],
		[]string{`"model":"m"`, `"\u006dodel":"m"`, `"model":"x","model":"m"`, `"model":{"usage":1},"model":"m"`}[rnd.IntN(4)],
		[]string{`"usage":{"input":1,"output":2}`, ` "usage" :{"output":2,"input":1 }`, `"usag\u0065":{"input":1,"output":2}`}[rnd.IntN(3)],
	}
	rnd.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return sessiontest.MessageLine(n, `{"role":"assistant",`+strings.Join(members, ",")+`}`)
}

// settle waits until the file's times would show another change.
func settle(t *testing.T, f *sessiontest.File) {
	require.Eventually(t, func() bool {
		st, err := f.Storage.Stat(sessiontest.FileName)
		return err == nil && !st.Racy(time.Now().UnixNano())
	}, time.Minute, time.Millisecond)
}

// TestCostsInAnyOrder: wherever a message says what it cost, it is found, also in a file that was changed just now, of
// which entries are read as a whole.
func TestCostsInAnyOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	const answers = 300
	text := sessiontest.Header
	for n := range answers {
		text += answer(rnd, n, rnd.IntN(30))
	}
	f := sessiontest.NewFile(t, text)
	for range 2 {
		snap := sessiontest.Snapshot(t, sessioncore.NewStore(f.Storage).Session(sessiontest.FileName))
		usage, _ := readUsage(t, snap, sessioncore.NoEntry)
		require.Equal(t, fmt.Sprintf("[%d,%d,0,0,%d,0,null]", answers, 2*answers, 3*answers), usage.Total.numbers())
		require.Len(t, usage.Models, 1)
		require.Contains(t, usage.Models, "p/m")
		settle(t, f)
	}
}

// TestTextsAreReadOnce: what a session cost takes its index, and of each answer the few bytes that say it.
func TestTextsAreReadOnce(t *testing.T) {
	text := sessiontest.Header
	for n := range 200 {
		text += usageLine(n, "null", `{"role":"assistant","content":[{"type":"text","text":"`+strings.Repeat("text ", 2000)+`"}],"provider":"p","model":"m","usage":{"input":1}}`)
	}
	f := sessiontest.NewFile(t, text)
	settle(t, f)
	files := &counting{Storage: f.Storage}
	snap := sessiontest.Snapshot(t, sessioncore.NewStore(files).Session(sessiontest.FileName))
	before := files.read.Load()
	costs, err := Costs(t.Context(), snap, Prices{})
	require.NoError(t, err)
	require.Len(t, costs, 200)
	require.Less(t, files.read.Load()-before, int64(len(text)/50))
}
