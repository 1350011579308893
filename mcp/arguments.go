package mcp

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sessionfs/sessioncore/names"
)

// Parameter is a parameter of a tool: a text, a whole number, or true or false.
type Parameter struct {
	Name        string
	Description string
	IsNumber    bool
	IsChoice    bool // true or false
	IsRequired  bool
	// Most is the greatest number, or the size of the longest text in bytes.
	Most int
}

// CallArguments are the checked arguments of a call.
type CallArguments struct {
	texts   map[string]string
	numbers map[string]int
	choices map[string]bool
}

// Text returns the text of a parameter, "" where the call has none.
func (a CallArguments) Text(name string) string { return a.texts[name] }

// Number returns the number of a parameter, or byDefault where the call has none.
func (a CallArguments) Number(name string, byDefault int) int {
	number, isGiven := a.numbers[name]
	if isGiven {
		return number
	}
	return byDefault
}

// Choice returns whether a parameter is true. It is false where the call has none.
func (a CallArguments) Choice(name string) bool { return a.choices[name] }

// cursorParameter is the parameter of a call that goes on. Each tool has it.
var cursorParameter = Parameter{
	Name: "cursor", Most: 64,
	Description: "What an answer says to go on with. The other parameters must be the same as before.",
}

// all returns the parameters of the tool with the cursor.
func (t *Tool) all() []Parameter { return append(slices.Clip(t.Parameters), cursorParameter) }

// schema returns the JSON Schema of the parameters, as clients show it to their models.
func (t *Tool) schema() map[string]any {
	properties := map[string]any{}
	required := []string{}
	for _, p := range t.all() {
		properties[p.Name] = p.schema()
		if p.IsRequired {
			required = append(required, p.Name)
		}
	}
	return map[string]any{
		"type":                 "object",
		"properties":           properties,
		"required":             required,
		"additionalProperties": false,
	}
}

// schema returns the JSON Schema of the values of the parameter, with the bounds that calls are held against.
func (p *Parameter) schema() map[string]any {
	schema := map[string]any{"description": p.Description}
	switch {
	case p.IsNumber:
		schema["type"] = "integer"
		schema["minimum"] = 1
		schema["maximum"] = p.Most
	case p.IsChoice:
		schema["type"] = "boolean"
	default:
		schema["type"] = "string"
		schema["maxLength"] = p.Most
	}
	return schema
}

// parse checks the arguments of a call, which are a JSON object, or nothing where there are none. An error is for the
// agent, in plain words.
func (t *Tool) parse(text json.RawMessage) (CallArguments, error) {
	a := CallArguments{
		texts:   map[string]string{},
		numbers: map[string]int{},
		choices: map[string]bool{},
	}
	values := map[string]json.RawMessage{}
	if len(text) > 0 {
		err := json.Unmarshal(text, &values)
		if err != nil {
			return a, fmt.Errorf("the arguments of %s must be one JSON object, not %s", t.Name, excerpt(text))
		}
	}
	for _, p := range t.all() {
		value := values[p.Name]
		delete(values, p.Name) // the rest are no parameters
		isMissing := len(value) == 0 || string(value) == "null"
		if isMissing && p.IsRequired {
			return a, fmt.Errorf("%s needs %s", t.Name, p.Name)
		}
		if isMissing {
			continue
		}
		err := a.add(&p, value)
		if err != nil {
			return a, err
		}
	}
	for name := range values {
		return a, fmt.Errorf("%s has no parameter %s; it has %s", t.Name, excerpt([]byte(name)), t.parameterNames())
	}
	return a, nil
}

// parameterNames returns the names of the parameters for people.
func (t *Tool) parameterNames() string {
	var all []string
	for _, p := range t.all() {
		all = append(all, p.Name)
	}
	return strings.Join(all, ", ")
}

// add checks the value of a parameter and adds it.
func (a *CallArguments) add(p *Parameter, value json.RawMessage) error {
	switch {
	case p.IsNumber:
		return a.addNumber(p, value)
	case p.IsChoice:
		return a.addChoice(p, value)
	}
	return a.addText(p, value)
}

// addNumber adds a whole number from 1 to the bound of its parameter, and refuses another value.
func (a *CallArguments) addNumber(p *Parameter, value json.RawMessage) error {
	var number float64
	err := json.Unmarshal(value, &number)
	isWhole := err == nil && number == math.Trunc(number)
	if !isWhole || number < 1 || number > float64(p.Most) {
		return fmt.Errorf("%s must be a whole number from 1 to %d, not %s", p.Name, p.Most, excerpt(value))
	}
	a.numbers[p.Name] = int(number)
	return nil
}

// addChoice adds true or false, and refuses another value.
func (a *CallArguments) addChoice(p *Parameter, value json.RawMessage) error {
	isTrue := string(value) == "true"
	isFalse := string(value) == "false"
	if !isTrue && !isFalse {
		return fmt.Errorf("%s must be true or false, not %s", p.Name, excerpt(value))
	}
	a.choices[p.Name] = isTrue
	return nil
}

// addText adds a text, and refuses one that is too long, blank where it is required, or with control characters.
func (a *CallArguments) addText(p *Parameter, value json.RawMessage) error {
	var text string
	err := json.Unmarshal(value, &text)
	if err != nil {
		return fmt.Errorf("%s must be a text, not %s", p.Name, excerpt(value))
	}
	switch {
	case len(text) > p.Most:
		return fmt.Errorf("%s has %d bytes; it may have %d", p.Name, len(text), p.Most)
	case strings.TrimSpace(text) == "" && p.IsRequired:
		return fmt.Errorf("%s is empty", p.Name)
	case strings.ContainsFunc(text, isStrange):
		return fmt.Errorf("%s has a control character: %s", p.Name, excerpt(value))
	}
	a.texts[p.Name] = text
	return nil
}

// isStrange reports whether a character has no place in an argument: a query may have several lines.
func isStrange(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r) }

// maxExcerpt is how much of a wrong argument an error repeats, in bytes.
const maxExcerpt = 60

// excerpt returns the beginning of a wrong argument for an error.
func excerpt(value []byte) string {
	text := string(value)
	if len(text) > maxExcerpt {
		text = cutText(text, maxExcerpt) + "…"
	}
	return names.VisibleLine(text)
}

// cutText returns the first bytes of a text, at most as many as most says, without a part of a character at the end.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for end := most; end > most-utf8.UTFMax; end-- { // back to the beginning of a character
		if utf8.RuneStart(text[end]) {
			return text[:end]
		}
	}
	return text[:most] // it is no UTF-8
}
