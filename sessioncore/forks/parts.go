package forks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
)

// part is a part of a conversation, to compare it: a hash of a line of text, an image or a call with its speaker.
type part struct {
	hash    uint64
	message int // its number in the context, from 1
}

// conversationParts are the parts of a conversation in order. Results stand apart, as their place is behind their calls.
type conversationParts struct {
	turns   []part
	results [][]part // by call; nil for a call without a result
}

// seed is the seed of all hashes, which only this process compares.
var seed = maphash.MakeSeed()

// hashOf returns the hash of a block of a speaker's turn. The ids of calls do not count, as a new session
// has others.
func hashOf(by agents.Speaker, block *agents.TurnBlock) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	if by == agents.ByProgram { // other agents may write the same as the person's
		by = agents.ByUser
	}
	_ = h.WriteByte(byte(by))
	for _, text := range []string{block.Text, block.MediaType, block.Data, block.Tool} {
		maphash.WriteComparable(&h, text)
	}
	if block.Call != "" {
		hashJSON(&h, block.Arguments)
	}
	return h.Sum64()
}

// hashJSON adds the tokens of a JSON text to a hash. Spaces and the spelling of strings do not count, nor
// does anything behind an error of the text.
func hashJSON(h *maphash.Hash, text rawjson.Value) {
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	for {
		token, err := in.Token()
		if err != nil {
			return
		}
		_, _ = fmt.Fprintf(h, "%T %q\n", token, fmt.Sprint(token))
	}
}

// readParts returns the parts of a context.
func readParts(ctx context.Context, of *document.Document) (*conversationParts, error) {
	c, err := readConversation(ctx, of)
	if err != nil {
		return nil, err
	}
	all := &conversationParts{results: make([][]part, len(c.calls))}
	for i := range c.messages {
		err := ctx.Err()
		if err != nil {
			return nil, err
		}
		turn, err := c.turnOf(i)
		if err != nil {
			return nil, err
		}
		if turn == nil {
			continue
		}
		parts := partsOf(turn, i+1)
		call, isResult := c.results[i]
		if isResult {
			all.results[call] = parts
		} else {
			all.turns = append(all.turns, parts...)
		}
	}
	return all, nil
}

// partsOf returns the parts of the turn of a message, never nil: the lines of its texts, and behind them
// its images and calls, since agents may join the texts of a turn or keep them apart from the rest.
func partsOf(t *agents.Turn, message int) []part {
	parts := []part{}
	add := func(block *agents.TurnBlock) {
		hash := hashOf(t.By, block)
		parts = append(parts, part{hash: hash, message: message})
	}
	for line := range strings.Lines(t.Texts("\n")) {
		if strings.TrimSpace(line) != "" {
			add(&agents.TurnBlock{Text: strings.TrimSuffix(line, "\n")})
		}
	}
	for i := range t.Blocks {
		if t.Blocks[i].Text == "" {
			add(&t.Blocks[i])
		}
	}
	return parts
}

// CheckConversation is the comparison of Receive for a session that was made in another way. The context at
// the leaf of made, with its blobs, must be the branch's. The error is a refusal if it is not.
func (b *SourceBranch) CheckConversation(ctx context.Context, made *sessioncore.Snapshot, blobs document.Blobs) error {
	want, err := b.Snapshot.Context(ctx, b.Entry, b.Blobs)
	if err != nil {
		return err
	}
	defer want.Close()
	leaf, err := made.Leaf()
	if err != nil {
		return err
	}
	got, err := made.Context(ctx, leaf, blobs)
	if err != nil {
		return err
	}
	defer got.Close()
	return compareConversations(ctx, want, got)
}

// compareConversations returns a refusal that names the first message of a context that another one lacks
// or has in another form. got may begin with a note, and have notes in the place of results that want lacks.
func compareConversations(ctx context.Context, want, got *document.Document) error {
	before, err := readParts(ctx, want)
	if err != nil {
		return err
	}
	after, err := readParts(ctx, got)
	if err != nil {
		return err
	}
	turns := after.turns
	if beginsWithNote(turns) && !beginsWithNote(before.turns) {
		turns = turns[1:]
	}
	err = compareParts(before.turns, turns)
	if err != nil {
		return err
	}
	if len(before.results) != len(after.results) {
		return differsAt(0)
	}
	for call, result := range before.results {
		if result == nil { // then after has a note
			continue
		}
		err := compareParts(result, after.results[call])
		if err != nil {
			return err
		}
	}
	return nil
}

// beginsWithNote reports whether the first part is the note that a conversation has no beginning.
func beginsWithNote(turns []part) bool {
	note := hashOf(agents.ByUser, &agents.TurnBlock{Text: firstText})
	return len(turns) > 0 && turns[0].hash == note
}

// compareParts returns a refusal for the first part that got lacks, has in another form, or has too much.
func compareParts(want, got []part) error {
	for i := range want {
		if i >= len(got) || want[i].hash != got[i].hash {
			return differsAt(want[i].message)
		}
	}
	if len(got) > len(want) {
		return differsAt(got[len(want)].message)
	}
	return nil
}

// differsAt returns the refusal of a new session in which a message, by its number, differs.
func differsAt(message int) error {
	return refuse("the new session would differ in message %d", max(1, message))
}
