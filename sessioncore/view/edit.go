package view

import (
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// This file shows the calls of tools that change files as diffs, such as Edit, Write and
// apply_patch.

// edit is one edit, by the roles of its arguments.
type edit [message.Roles]rawjson.Value

// editOf returns the edit in the arguments of a call.
func editOf(list []argument) (e edit) {
	for _, a := range list {
		e[a.role] = a.Value
	}
	if len(e[message.CommandRole]) > 0 {
		e[message.VerbRole] = e[message.CommandRole]
	}
	return e
}

// changes reports whether the edit has a change. writes says that its tool writes whole files.
func (e *edit) changes(writes bool) bool {
	written := writes && e[message.FileRole].IsString() && e[message.ContentRole].IsString()
	return written || e[message.NewRole].IsString() || e[message.DiffRole].IsString()
}

// edit adds the arguments of a call as a diff. It returns false, and adds nothing, if they have no edit.
func (b *builder) edit(tool string, list []argument) bool {
	e := editOf(list)
	edits := []edit{e}
	isEdit := e.changes(message.WritesWhole(tool, e[message.VerbRole]))
	for item := range e[message.EditsRole].EachElement {
		inner := editOf(argumentsOf(tool, item))
		isEdit = inner.changes(false)
		if !isEdit {
			break
		}
		if len(edits) <= b.blocksLeft {
			edits = append(edits, inner)
		} else {
			b.cut = true
		}
	}
	if !isEdit {
		return false
	}
	d := diffText{b: b}
	for i := range edits {
		if b.outputLeft <= 0 {
			b.cut = true
			break
		}
		d.edit(&edits[i])
	}
	b.blocksLeft -= len(edits) - 1
	b.code("diff", d.out)
	b.named(list, message.FileRole, message.OldRole, message.NewRole, message.DiffRole, message.EditsRole,
		message.ContentRole, message.CommandRole, message.VerbRole)
	return true
}

// diffText writes edits as diffs.
type diffText struct {
	b   *builder
	out []byte
}

// edit appends an edit: the name of its file, and its lines with signs.
func (d *diffText) edit(e *edit) {
	path := shownLine(e[message.FileRole], maxProblem)
	diff := e[message.DiffRole]
	after := e[message.NewRole]
	content := e[message.ContentRole]
	if path != "" {
		if content == nil {
			d.lines("--- ", path)
		}
		d.lines("+++ ", path)
	}
	switch {
	case diff.IsString():
		d.lines("", d.text(diff))
	case after.IsString():
		d.lines("@@", "")
		before := d.text(e[message.OldRole])
		d.out = AppendDiff(d.out, before, d.text(after))
	case content.IsString():
		d.lines("+", linesOf(d.text(content))...)
	}
}

// text returns the visible text of an argument, of a long one its head and tail, as long as the entry has any
// room left.
func (d *diffText) text(v rawjson.Value) string {
	if d.b.outputLeft <= 0 {
		d.b.cut = true
		return ""
	}
	text := d.b.shortened(v)
	d.b.outputLeft -= min(len(text), d.b.outputLeft)
	return string(text)
}

// lines appends lines with a sign before each.
func (d *diffText) lines(sign string, lines ...string) { d.out = appendLines(d.out, sign, lines) }

// AppendDiff appends the lines of a hunk to dst: how one text becomes another.
func AppendDiff(dst []byte, before, after string) []byte {
	for _, c := range changes(linesOf(before), linesOf(after), itself) {
		dst = appendLines(dst, "-", c.gone)
		dst = appendLines(dst, "+", c.come)
		dst = appendLines(dst, " ", c.same)
	}
	return dst
}

// appendLines appends lines with a sign before each.
func appendLines(dst []byte, sign string, lines []string) []byte {
	for _, line := range lines {
		dst = append(dst, sign...)
		dst = append(dst, line...)
		dst = append(dst, '\n')
	}
	return dst
}

// itself is the key of a line.
func itself(line string) string { return line }

// linesOf returns the lines of a text without their ends.
func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
