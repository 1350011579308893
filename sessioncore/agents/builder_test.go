package agents_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// toy is an agent whose records call the methods of a Builder.
type toy struct{}

func (toy) IsSession(name string) bool { return strings.HasSuffix(name, ".jsonl") }

func (toy) About(name string, _ storage.Object, _ int64, _ bool) (agents.About, error) {
	return agents.About{ID: strings.TrimSuffix(filepath.Base(name), ".jsonl")}, nil
}

func (toy) Converter(about agents.About, _ storage.Object) *agents.Builder {
	return agents.NewBuilder(about, agents.Provider{API: "toy-api", Name: "toy", Model: "toy-1"}, newToy)
}

// newToy returns the function that calls the methods of a Builder: by the type of a record, with its other members.
func newToy(b *agents.Builder) func(*agents.Record) {
	return func(r *agents.Record) {
		id, _ := r.Member("id").Text()
		text := r.Member("text")
		said, _ := text.Text()
		var content agents.Blocks
		content.Text(text)
		content.Image(r.Member("mime"), r.Member("data"))
		b.From(id, r.Member("time"))
		b.Model(r.Member("model"))
		b.Level(r.Member("level"))
		typ, _ := r.Member("type").Text()
		switch typ {
		case "begin":
			b.Begin(agents.Header{
				Time:    r.Member("time"),
				Cwd:     r.Member("cwd"),
				Version: r.Member("version"),
			})
		case "cwd":
			b.Directory(text)
		case "title":
			b.Named(said)
		case "user":
			b.Prompted(said)
			b.User(content)
		case "note":
			b.Custom("toy/note", content, true)
		case "bash":
			b.Bash(said, "output of "+said, r.Member("exit"))
		case "compact":
			b.Compaction(text, b.At(), 7)
		case "hang":
			b.Hang(said)
		case "answer":
			toyAnswer(b, r, content)
		case "result":
			b.Result(agents.ToolResult{Call: r.Member("call"), Content: content, IsError: true})
		case "abort":
			answer := b.Open()
			if answer != nil {
				answer.Stop("aborted")
			}
		case "error":
			b.Answer("").Error(text)
		case "close":
			b.Close()
		}
	}
}

// toyAnswer adds an answer, which replaces an open one of its id. Each word of it is a call too, and has a result.
func toyAnswer(b *agents.Builder, r *agents.Record, content agents.Blocks) {
	id, _ := r.Member("id").Text()
	b.Replace(id)
	answer := b.Answer(id)
	thought := r.Member("thought")
	if thought.IsString() {
		answer.Thinking(thought, r.Member("signature"))
	}
	answer.Text(r.Member("text"))
	answer.Model(r.Member("model"))
	answer.Count(agents.Usage{Input: 1, Output: 2, Total: 3})
	tool := r.Member("tool")
	if tool.Missing() {
		tool = rawjson.Value(`"tool"`)
	}
	words, _ := r.Member("text").Text()
	for word := range strings.FieldsSeq(words) {
		call := rawjson.Value(rawjson.Quote(word))
		answer.Call(call, tool, r.Member("arguments"))
		b.Result(agents.ToolResult{
			Call:    call,
			Content: content,
			Details: r.Member("details"),
			Session: "subagents/x.jsonl",
		})
	}
}

func init() {
	agents.Register(agents.Agent{Name: "toy", Open: func(source agents.Source) (agents.Store, error) {
		return agents.Store{Files: source.Files, Format: toy{}}, nil
	}})
}

var toys = agentstest.Kit{Agent: "toy", Place: func(sample string) string { return "p/" + sample }}

// TestLongNames: the names of a tool and of models are cut wherever they are.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("x", 5000)
	cut := strings.Repeat("x", 4096) + "…"
	file := `{"type":"begin","time":"2026-01-01T00:00:00.000Z","version":"1"}
{"type":"user","id":"u1","text":"hello","time":"2026-01-01T00:00:01.000Z","model":"LONG1"}
{"type":"answer","id":"a1","text":"c1","time":"2026-01-01T00:00:02.000Z","tool":"LONG2","model":"LONG3"}
{"type":"user","id":"u2","text":"more"}
`
	got := toys.Check(t, "s.jsonl", strings.ReplaceAll(file, "LONG", long))
	require.Equal(t, 4, strings.Count(got, cut+`"`), "a change of the model, the answer's model, the call and its result")
	require.NotContains(t, got, long)
}

func TestBuilder(t *testing.T) {
	const file = `{"type":"begin","time":"2026-01-01T00:00:00.000Z","version":"1"}
{"type":"cwd","text":"/srv"}
{"type":"user","id":"u1","text":"hello","time":"2026-01-01T00:00:01.000Z","model":"m1","level":"high"}
{"type":"answer","id":"a1","text":"c1 c2","thought":"hm","signature":"s","time":"2026-01-01T00:00:02.000Z","details":{"a":1}}
{"type":"user","id":"u2","text":"more","mime":"image/png","data":"AA=="}
{"type":"answer","id":"a1","text":"c1","arguments":"{\n\"x\":1}"}
{"type":"hang","text":"u1"}
{"type":"note","id":"n1","text":"aside"}
{"type":"result","id":"u2","call":"c1","text":"late"}
{"type":"abort"}
{"type":"answer","id":"a2","text":"","model":"m2"}
{"type":"title","text":"A title"}
{"type":"bash","text":"ls","exit":1}
{"type":"compact","text":"in short"}
{"type":"error","text":"too many"}
{"type":"hang","text":"none"}
`
	got := toys.Check(t, "s.jsonl", file)
	require.Equal(t, strings.TrimSpace(`
session s A title
u1.model <  model_change toy/m1 [3]
u1.level < u1.model thinking_level_change high [3]
u1 < u1.level message user "hello" [3]
a1 < u1 message assistant "c1" c1:tool{"x":1} aborted 1+2 [4 6]
a1.2 < a1 message toolResult tool "c1" [6]
u2 < a1.2 message user "more" image image/png AA== [5]
n1 < u1 custom_message "aside" [8]
u2.2 < n1 message toolResult tool "late" failed [9]
a2.model < u2.2 model_change toy/m2 [11]
a2 < a2.model message assistant stop 1+2 [11]
l13 < a2 message bashExecution [13]
l14 < l13 compaction in short kept l13 [14]
l15 < l14 message assistant error [15]
leaf <  custom [16]`), strings.Join(agentstest.Outline(t, got), "\n"))
	toys.Growth(t, "s.jsonl", file)
}

// FuzzBuilder checks that calls in any order give a tree of whole entries, and the same one where the
// file grew.
func FuzzBuilder(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 2, 9, 9, 10})
	types := strings.Fields("begin cwd user note bash compact hang answer answer answer result abort error close")
	f.Fuzz(func(t *testing.T, plan []byte) {
		var file strings.Builder
		for i, step := range plan[:min(len(plan), 40)] {
			typ := types[int(step)%len(types)]
			id := fmt.Sprint("r", int(step)/len(types)%5)
			fmt.Fprintf(&file, `{"type":%q,"id":%q,"text":"r%d r%d.2",`, typ, id, i%5, step%3)
			fmt.Fprintf(&file, `"call":"r1","model":"m%d"}`+"\n", step%2)
		}
		newConverter := func() *agents.Builder { return toy{}.Converter(agents.About{ID: "s"}, nil) }
		agentstest.Prefixes(t, newConverter, file.String())
	})
}

// TestArguments: the arguments of a call are one object on one line, whatever the model wrote.
func TestArguments(t *testing.T) {
	for given, want := range map[string]string{
		"":                    `{}`,
		`7`:                   `{}`,
		`{"a":1}`:             `{"a":1}`,
		`"{\n \"a\": 1\n}\n"`: `{  "a": 1 }`,
		`"{\"a\":"`:           `{"input":"{\"a\":"}`,
		`"ls"`:                `{"input":"ls"}`,
	} {
		arguments := agents.Arguments(rawjson.Value(given))
		require.Equal(t, want, string(arguments), given)
	}
}
