package forks

import (
	"context"
	"time"

	"sessionfs/sessioncore/agents"
)

// turner hands over the turns of a conversation in the order that services require: the result of a call
// follows it at once, and the first turn is not the model's.
type turner struct {
	conversation *conversation
	receive      func(*agents.Turn) error
	turns        int       // the number of turns that were handed over
	last         time.Time // the time of the last turn
}

// eachTurn calls f for each turn of a conversation, and stops at the first error. handedOver is the time of
// turns before the first one that has a time.
func (c *conversation) eachTurn(ctx context.Context, handedOver time.Time, f func(*agents.Turn) error) error {
	t := turner{conversation: c, receive: f}
	for i := range c.messages {
		err := ctx.Err()
		if err != nil {
			return err
		}
		_, isResult := c.results[i]
		if isResult {
			continue // it follows its call
		}
		turn, err := c.turnOf(i)
		if err != nil {
			return err
		}
		if turn == nil {
			continue
		}
		if t.last.IsZero() && turn.Time.IsZero() {
			turn.Time = handedOver
		}
		err = t.add(turn, i)
		if err != nil {
			return err
		}
	}
	return nil
}

// add hands over the turn of a message, and the results of its calls. If the model begins, it hands over a
// note first.
func (t *turner) add(turn *agents.Turn, message int) error {
	if turn.By == agents.ByModel && t.turns == 0 {
		note := &agents.Turn{
			By:     agents.ByProgram,
			Time:   turn.Time,
			Blocks: []agents.TurnBlock{{Text: firstText}},
		}
		err := t.handOver(note)
		if err != nil {
			return err
		}
	}
	err := t.handOver(turn)
	if err != nil {
		return err
	}
	call := t.conversation.messages[message].calls
	for i := range turn.Blocks {
		if turn.Blocks[i].Call == "" {
			continue
		}
		err := t.addResult(call)
		if err != nil {
			return err
		}
		call++
	}
	return nil
}

// addResult hands over the result of a call, by its number, or a note that it has none.
func (t *turner) addResult(number int) error {
	call := t.conversation.calls[number]
	if call.result == noResult {
		note := &agents.Turn{
			By:      agents.ByTool,
			Call:    call.id,
			Blocks:  []agents.TurnBlock{{Text: lackedResult}},
			IsError: true,
		}
		return t.handOver(note)
	}
	turn, err := t.conversation.turnOf(call.result)
	if err != nil {
		return err
	}
	return t.handOver(turn)
}

// handOver hands a turn over. Times never go back, since clients take the newest record for the last one.
func (t *turner) handOver(turn *agents.Turn) error {
	if turn.Time.Before(t.last) {
		turn.Time = t.last
	}
	t.last = turn.Time
	t.turns++
	return t.receive(turn)
}
