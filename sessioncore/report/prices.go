package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Prices are what tokens cost, by model, for answers whose client recorded no cost. The zero value knows no model.
type Prices struct{ models map[string]price }

// price is what a token costs, in dollars.
type price struct{ input, output, cacheRead, cacheWrite amount }

// maxPrices is how large a file of prices may be, in bytes. That of LiteLLM has 2 MB for 3,000 models.
const maxPrices = 64 << 20

// OpenPrices reads a file of prices, and none for "".
func OpenPrices(name string) (p Prices, err error) {
	if name == "" {
		return p, nil
	}
	if info, err := os.Stat(name); err != nil {
		return p, err
	} else if !info.Mode().IsRegular() || info.Size() > maxPrices {
		return p, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("it is not a file of at most %d MiB", maxPrices>>20)}
	}
	file, err := os.Open(name)
	if err != nil {
		return p, err
	}
	defer file.Close()
	if p, err = readPrices(io.LimitReader(file, maxPrices)); err != nil {
		err = &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return p, err
}

// readPrices reads prices in the format of LiteLLM's model_prices_and_context_window.json: an object of the models, each with
// dollars per token. A model without a price for what it is told, or for what it says, is left out.
func readPrices(r io.Reader) (Prices, error) {
	p := Prices{map[string]price{}}
	d := json.NewDecoder(r)
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return Prices{}, errors.New("it is not a JSON object with a member for each model")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return Prices{}, err
		}
		var m struct {
			Input      *amount `json:"input_cost_per_token"`
			Output     *amount `json:"output_cost_per_token"`
			CacheRead  *amount `json:"cache_read_input_token_cost"`
			CacheWrite *amount `json:"cache_creation_input_token_cost"`
		}
		if err := d.Decode(&m); err != nil {
			return Prices{}, fmt.Errorf("model %q: %w", name, err)
		}
		for _, of := range []*amount{m.Input, m.Output, m.CacheRead, m.CacheWrite} {
			if of != nil && *of < 0 {
				return Prices{}, fmt.Errorf("model %q has a price below 0", name)
			}
		}
		if m.Input == nil || m.Output == nil {
			continue
		}
		or := func(of *amount) amount { // without a price of its own, what is in the cache is told as anything else
			if of == nil {
				of = m.Input
			}
			return *of
		}
		p.models[name.(string)] = price{*m.Input, *m.Output, or(m.CacheRead), or(m.CacheWrite)}
	}
	if _, err := d.Token(); err != nil {
		return Prices{}, err
	}
	if len(p.models) == 0 {
		return Prices{}, errors.New("no model in it has input_cost_per_token and output_cost_per_token")
	}
	return p, nil
}

// priced returns a usage with a cost: its own or else, if the model has a price, that of its tokens. The name of the model is
// that of the provider, a slash and its own, by which or by the last of which prices are known.
func (p Prices) priced(model string, sum Sum) Sum {
	if sum.Unpriced == 0 {
		return sum
	}
	of, ok := p.models[model]
	if !ok {
		_, name, _ := strings.Cut(model, "/")
		if of, ok = p.models[name]; !ok {
			return sum
		}
	}
	c := usageCost{
		known: true, Input: sum.Input * of.input, Output: sum.Output * of.output,
		CacheRead: sum.CacheRead * of.cacheRead, CacheWrite: sum.CacheWrite * of.cacheWrite,
	}
	c.Total = c.Input + c.Output + c.CacheRead + c.CacheWrite
	sum.Cost, sum.Unpriced = c, 0
	return sum
}
