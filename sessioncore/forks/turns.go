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
	take         func(*agents.Turn) error
	taken        int       // the number of turns
	last         time.Time // the time of the last turn
}

// eachTurn calls f for each turn of a conversation. handedOver is the time of turns before the first one that
// has a time.
func (c *conversation) eachTurn(ctx context.Context, handedOver time.Time, f func(*agents.Turn) error) error {
	t := turner{conversation: c, take: f}
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

// add hands a turn over, and the results of its calls.
func (t *turner) add(turn *agents.Turn, message int) error {
	if turn.By == agents.ByModel && t.taken == 0 {
		first := &agents.Turn{By: agents.ByProgram, Time: turn.Time, Blocks: []agents.TurnBlock{{Text: firstText}}}
		err := t.give(first)
		if err != nil {
			return err
		}
	}
	err := t.give(turn)
	if err != nil {
		return err
	}
	call := t.conversation.messages[message].calls
	for i := range turn.Blocks {
		if turn.Blocks[i].Call == "" {
			continue
		}
		err := t.result(call)
		if err != nil {
			return err
		}
		call++
	}
	return nil
}

// result hands over the result of a call, or a note that it has none.
func (t *turner) result(call int) error {
	of := t.conversation.calls[call]
	if of.result == noResult {
		return t.give(&agents.Turn{
			By:      agents.ByTool,
			Call:    of.id,
			Blocks:  []agents.TurnBlock{{Text: lackedResult}},
			IsError: true,
		})
	}
	turn, err := t.conversation.turnOf(of.result)
	if err != nil {
		return err
	}
	return t.give(turn)
}

// give hands a turn over. Times never go back, since clients take the newest record for the last one.
func (t *turner) give(turn *agents.Turn) error {
	if turn.Time.Before(t.last) {
		turn.Time = t.last
	}
	t.last = turn.Time
	t.taken++
	return t.take(turn)
}
