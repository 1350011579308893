package view

import (
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// This file shows the calls of tools that change files as diffs, such as Edit, Write, str_replace_based_edit_tool and apply_patch.

// edit is the arguments of such a call, or one of several edits in it.
type edit struct {
	of    [message.Roles]rawjson.Value
	other []rawjson.Member
}

func editOf(tool string, arguments rawjson.Value) (e edit) {
	for m := range arguments.EachMember {
		switch role := message.ArgumentOf(tool, m.Name()).Role; {
		case role == message.CommandRole:
			e.of[message.VerbRole] = m.Value
		case role != message.OtherRole && role != message.IntentRole:
			e.of[role] = m.Value
		case !m.KeyIs(intentKey) && len(e.other) < maxCalls:
			e.other = append(e.other, m)
		}
	}
	return e
}

// changes reports whether the edit says what is changed. writes says that its tool writes whole files.
func (e *edit) changes(writes bool) bool {
	written := writes && e.of[message.FileRole].IsString() && e.of[message.ContentRole].IsString()
	return written || e.of[message.NewRole].IsString() || e.of[message.DiffRole].IsString()
}

// edit shows the arguments of a call as a diff. It returns false, and shows nothing, if they are not those of an edit.
func (b *builder) edit(tool string, arguments rawjson.Value) bool {
	e := editOf(tool, arguments)
	is := e.changes(strings.Contains(strings.ToLower(tool), "write") || e.of[message.VerbRole].Is("create"))
	for item := range e.of[message.EditsRole].EachElement {
		inner := editOf(tool, item)
		if is = inner.changes(false); !is {
			break
		}
	}
	if !is {
		return false
	}
	d := diffText{b: b, values: valueText{excerpt: &b.excerpt}}
	d.edit(&e)
	for item := range e.of[message.EditsRole].EachElement {
		if b.blocksLeft--; b.blocksLeft < 0 || b.outputLeft <= 0 {
			b.cut = true
			break
		}
		inner := editOf(tool, item)
		d.edit(&inner)
	}
	b.cut = b.cut || d.values.cut
	b.code("diff", d.out)
	for _, m := range e.other {
		b.note(shownLine(m.Key, maxKey)+":", b.scalar(m.Value))
	}
	return true
}

// diffText writes edits as diffs.
type diffText struct {
	b      *builder
	values valueText
	out    []byte
}

func (d *diffText) edit(e *edit) {
	before, after := e.of[message.OldRole], e.of[message.NewRole]
	if path := shownLine(e.of[message.FileRole], maxProblem); path != "" {
		if e.of[message.ContentRole] == nil {
			d.line("--- ", []byte(path))
		}
		d.line("+++ ", []byte(path))
	}
	switch {
	case e.of[message.DiffRole].IsString():
		d.line("", d.text(e.of[message.DiffRole]))
	case after.IsString():
		d.line("@@", nil)
		d.changed(linesOf(d.text(before)), linesOf(d.text(after)))
	case e.of[message.ContentRole].IsString():
		d.lines('+', linesOf(d.text(e.of[message.ContentRole])))
	}
}

// text returns the visible text of an argument, of a long one its head and tail, within what the entry may take.
func (d *diffText) text(v rawjson.Value) []byte {
	if d.b.outputLeft <= 0 {
		d.values.cut = true
		return nil
	}
	text := d.values.text(v)
	d.b.outputLeft -= min(len(text), d.b.outputLeft)
	return text
}

func (d *diffText) line(sign string, text []byte) {
	d.out = append(append(append(d.out, sign...), text...), '\n')
}

func (d *diffText) lines(sign byte, lines []string) {
	for _, line := range lines {
		d.out = append(append(append(d.out, sign), line...), '\n')
	}
}

// changed writes what becomes of old lines: what is gone, then what has come instead.
func (d *diffText) changed(before, after []string) {
	x, y := 0, 0
	for _, same := range common(before, after) {
		d.lines('-', before[x:same.a])
		d.lines('+', after[y:same.b])
		x, y = same.a+same.n, same.b+same.n
		d.lines(' ', before[same.a:x])
	}
}

// linesOf returns the lines of a text without their ends.
func linesOf(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(string(text), "\n")
}
