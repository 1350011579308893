package gemini

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/storagetest"
)

// TestNestedContent: content is a text, an object, or a list of both. Deeper lists are no parts, and
// cost one look at them.
func TestNestedContent(t *testing.T) {
	converter := func() *agents.Builder { return newHome(nil).Converter(agents.About{ID: "s"}, nil) }
	nested := func(text string, n int) string { return strings.Repeat("[", n) + text + strings.Repeat("]", n) }
	for name, record := range map[string]string{
		"content":   `{"id":"u","type":"user","content":%s}`,
		"display":   `{"id":"u","type":"user","content":"x","displayContent":%s}`,
		"answer":    `{"id":"a","type":"gemini","content":%s}`,
		"thoughts":  `{"id":"a","type":"gemini","content":"x","thoughts":%s}`,
		"calls":     `{"id":"a","type":"gemini","content":"x","toolCalls":%s}`,
		"result":    `{"id":"a","type":"gemini","content":"x","toolCalls":[{"id":"c","result":%s}]}`,
		"parts":     `{"id":"u","type":"user","content":[{"functionResponse":{"id":"c","parts":%s}}]}`,
		"response":  `{"id":"u","type":"user","content":[{"functionResponse":{"id":"c","response":%s}}]}`,
		"error":     `{"id":"u","type":"error","content":%s}`,
		"messages":  `{"sessionId":"s","messages":%s}`,
		"set":       `{"$set":{"messages":%s}}`,
		"in set":    `{"$set":{"messages":[{"id":"u","type":"user","content":%s}]}}`,
		"signature": `{"id":"a","type":"gemini","content":[{"thought":true,"text":"x","thoughtSignature":%s}]}`,
	} {
		sessiontest.Linear(t, 2000, func(n int) int64 {
			text := header + fmt.Sprintf(record, nested(`"deep"`, n)) + "\n"
			return agentstest.ConvertWork(t, converter, text).Scanned
		})
		flat := fmt.Sprintf(record, nested(`"deep"`, 2))
		whole, _ := agentstest.Convert(t, converter(), header+flat+"\n")
		if name != "response" && name != "signature" {
			require.NotContains(t, whole, "deep", name)
		}
	}
}

// TestManyProjects: neither the list of projects nor copies of sessions are compared with each other.
func TestManyProjects(t *testing.T) {
	for name, fileOf := range map[string]func(i int) (project, file string){
		"old projects": func(i int) (string, string) {
			return projectOf(fmt.Sprint("/srv/", i)), fmt.Sprintf("session-%08d", i)
		},
		"one project": func(i int) (string, string) { return projectOf("/srv/0"), fmt.Sprintf("session-%08d", i) },
		"copies":      func(i int) (string, string) { return "pier", fmt.Sprintf("session-%d-a1a1a1a1", i) },
	} {
		t.Run(name, func(t *testing.T) {
			sessiontest.Linear(t, 50, func(n int) int64 {
				h := agentstest.New(t, "gemini")
				list := ""
				for i := range n {
					list += fmt.Sprintf(`,"/srv/%d":"p%d"`, i, i)
					project, file := fileOf(i)
					h.Put("tmp/"+project+"/chats/"+file+".jsonl", strings.TrimSpace(header))
				}
				h.Put("projects.json", `{"projects":{`+list[1:]+`}}`)
				return workOfAll(t, h.Dir, n)
			})
		})
	}
}

// workOfAll returns the work to list and read all sessions of a home, which are n: bytes that are scanned, and the weighted
// numbers of objects and of calls for files.
func workOfAll(t *testing.T, dir string, n int) int64 {
	files := sessiontest.OpenDir(t, dir)
	newest, err := files.Stat("projects.json")
	require.NoError(t, err)
	time.Sleep(newest.Settling(time.Now())) // what changed a moment ago is read once more, by chance
	calls := int64(0)
	counted := &storagetest.Hooked{Storage: files}
	counted.Before = func(storagetest.Call) error {
		calls++
		return nil
	}
	fresh := agentstest.Open(t, "gemini", dir, counted)
	work := sessiontest.WorkOf(func() {
		sessions := fresh.Sessions("")
		require.Len(t, sessions, n)
		for _, name := range sessions {
			require.NotEmpty(t, fresh.Read(name))
		}
	})
	return work.Scanned + 100*work.Objects + 1000*calls
}

// TestAbove: a place before another one is found as by going back one by one, in few steps.
func TestAbove(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	places := []*messagePlace{{}}
	for range 5000 {
		behind := places[max(0, len(places)-1-random.IntN(3))]
		places = append(places, behind.behind(""))
	}
	for range 2000 {
		from := places[random.IntN(len(places))]
		depth := random.IntN(from.depth + 1)
		want := from
		for want.depth > depth {
			want = want.before
		}
		require.Same(t, want, from.above(depth))
		steps := 0
		for p := from; p != want; steps++ {
			next := p.before
			if p.jump.depth >= depth {
				next = p.jump
			}
			p = next
		}
		require.LessOrEqual(t, steps, 40)
	}
}

// TestOriginals: of what a compression copies, the last message with a text before the one found last is
// meant, and the look back has an end.
func TestOriginals(t *testing.T) {
	last := &messagePlace{}
	for i := range 1000 {
		last = last.behind(fmt.Sprint(i))
		last.said = uint64(1 + i%10)
	}
	last = last.behind("") // the copy of a copy, without an entry
	last.said = 10
	o := newOriginals(last, 3)
	require.Equal(t, "999", o.last(10).id)
	require.Equal(t, "998", o.last(9).id)
	require.Nil(t, o.last(77))
	require.Equal(t, "989", o.last(10).id)
	require.Equal(t, "988", o.last(9).id)
	for range 9 {
		require.NotNil(t, o.last(9))
	}
	require.Nil(t, o.last(9)) // it is further back than 112 messages
	require.Nil(t, newOriginals(&messagePlace{}, 0).last(0))
}
