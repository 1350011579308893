package mcp

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// served is a server of tools with a client.
type served struct {
	*sdk.ClientSession
	hangUp func()       // closes the client's ends
	ended  <-chan error // has the end of Serve
}

// serve connects a client to a server of tools.
func serve(t *testing.T, tools ...Tool) served {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- (&ToolServer{Name: "test", Version: "1", Tools: tools}).Serve(ctx, in, out) }()
	client := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, nil)
	session, err := client.Connect(ctx, &sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	require.NoError(t, err)
	hangUp := func() {
		_ = toServer.Close()
		_ = fromServer.Close()
	}
	t.Cleanup(func() {
		cancel()
		hangUp()
	})
	return served{session, hangUp, ended}
}

// ask calls a tool and returns the texts of the answer.
func (s *served) ask(t *testing.T, tool string, arguments any) (texts []string, isError bool) {
	t.Helper()
	r, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	require.NoError(t, err)
	for _, c := range r.Content {
		texts = append(texts, c.(*sdk.TextContent).Text)
	}
	return texts, r.IsError
}

// TestAnswers: an answer begins with the notice, has our notes before the text, and is bounded; an error, and a bug, are said.
func TestAnswers(t *testing.T) {
	s := serve(t, Tool{
		Name:       "say",
		Parameters: []Parameter{{Name: "what", Most: 10}},
		Run: func(_ context.Context, a CallArguments, out *AnswerText) error {
			switch a.Text("what") {
			case "little":
				out.Note("a note")
				_, err := io.WriteString(out, "found\n")
				return err
			case "much":
				out.Note("%s", strings.Repeat("n", 2*maxNotes))
				_, err := io.WriteString(out, strings.Repeat("潮\n", MaxAnswer))
				return err
			case "error":
				return errors.New(strings.Repeat("e", 2*MaxAnswer))
			}
			panic("a bug")
		},
	})
	texts, isError := s.ask(t, "say", map[string]any{"what": "little"})
	require.Equal(t, []string{Notice + "\na note", "found\n"}, texts)
	require.False(t, isError)
	for _, what := range []string{"much", "error"} {
		texts, isError = s.ask(t, "say", map[string]any{"what": what})
		require.LessOrEqual(t, len(texts[0])+len(texts[1]), MaxAnswer)
		require.True(t, strings.HasPrefix(texts[0], Notice))
		require.Equal(t, what == "error", isError)
		require.Equal(t, what == "much", strings.Contains(texts[0], "call say with the same parameters and the cursor 5"))
	}
	texts, isError = s.ask(t, "say", map[string]any{"what": "bug"})
	require.Equal(t, []string{Notice, "panic while reading: a bug"}, texts)
	require.True(t, isError)
	_, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: "other"})
	require.ErrorContains(t, err, `unknown tool "other"`)
	list, err := s.ListTools(context.Background(), nil)
	require.NoError(t, err)
	require.Len(t, list.Tools, 1)
	require.True(t, list.Tools[0].Annotations.ReadOnlyHint)
	s.hangUp()
	require.NoError(t, <-s.ended)
}

// waiting is a tool that waits for the end of its call.
func waiting() (tool Tool, begun chan bool, over chan error) {
	begun = make(chan bool, 10)
	over = make(chan error, 10)
	return Tool{
		Name: "wait",
		Run: func(ctx context.Context, _ CallArguments, _ *AnswerText) error {
			begun <- true
			<-ctx.Done()
			over <- ctx.Err()
			return ctx.Err()
		},
	}, begun, over
}

// TestCancel: a call that the client cancels ends, also one that waits for others, and the server goes on.
func TestCancel(t *testing.T) {
	tool, begun, over := waiting()
	s := serve(t, tool, Tool{Name: "quick", Run: func(context.Context, CallArguments, *AnswerText) error { return nil }})
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, maxCalls+1)
	for range maxCalls + 1 {
		go func() {
			_, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "wait"})
			failed <- err
		}()
	}
	for range maxCalls {
		<-begun
	}
	require.Empty(t, begun)
	cancel()
	for range maxCalls {
		require.ErrorIs(t, <-over, context.Canceled)
	}
	for range maxCalls + 1 {
		require.ErrorIs(t, <-failed, context.Canceled)
	}
	texts, isError := s.ask(t, "quick", nil)
	require.Equal(t, []string{Notice}, texts)
	require.False(t, isError)
}

// TestHangUp: a client that hangs up ends its calls and the server.
func TestHangUp(t *testing.T) {
	tool, begun, over := waiting()
	s := serve(t, tool)
	go func() { _, _ = s.CallTool(context.Background(), &sdk.CallToolParams{Name: "wait"}) }()
	<-begun
	s.hangUp()
	require.ErrorIs(t, <-over, context.Canceled)
	_ = <-s.ended // the answer has no reader
}
