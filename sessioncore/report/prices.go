package report

import (
	_ "embed" // for the list prices
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"sessionfs/sessioncore/message"
)

// Prices are the prices of models, for usages whose client recorded no cost. The zero value knows no model.
type Prices struct {
	file priceTable // of the user, whose models replace those of the list
	name string     // of its file
	list bool       // models that the file lacks have list prices
}

// listText is the list of prices that comes along, with models of Anthropic, OpenAI and Google.
//
//go:embed prices.json
var listText string

// priceList is the list of prices and the month that it is of. It is parsed when a usage needs it first, since most commands
// need none.
var priceList = sync.OnceValues(func() (priceTable, string) {
	var about struct {
		About struct{ Date string } `json:"_"`
	}
	if err := json.Unmarshal([]byte(listText), &about); err != nil {
		panic(err) // TestPriceList
	}
	table, err := readPrices(strings.NewReader(listText))
	if err != nil {
		panic(err)
	}
	return table, about.About.Date
})

// maxPrices bounds the size of a file of prices, in bytes. That of LiteLLM has 2 MB for 3,000 models.
const maxPrices = 64 << 20

// OpenPrices returns the list prices with the models of a file in their place. The name "" stands for the list alone.
func OpenPrices(name string) (p Prices, err error) {
	if name == "" {
		return Prices{list: true}, nil
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
	table, err := readPrices(io.LimitReader(file, maxPrices))
	if err != nil {
		return p, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return Prices{file: table, name: filepath.Base(name), list: true}, nil
}

// Source names the prices for a person: the month of the list, and the file; "" without any.
func (p Prices) Source() string {
	if !p.list {
		return ""
	}
	_, month := priceList()
	if p.name != "" {
		return month + " and of " + p.name
	}
	return month
}

// find returns the price of a model, of which model is the provider's name, a slash and its own. Where the provider bills
// requests, its models have the prices alone that the file has for them.
func (p Prices) find(model string) (price, bool) {
	if provider, _, _ := strings.Cut(model, "/"); message.BillsRequests(provider) {
		of, ok := p.file[model]
		return of, ok
	}
	if of, ok := p.file.find(model); ok || !p.list {
		return of, ok
	}
	list, _ := priceList()
	return list.find(model)
}

// price is the price of a token, in dollars.
type price struct {
	rates
	long []longRates // for answers with a long context, the longest first
	fast amount      // how often the price of an answer in fast mode is that of another one; 0 if nobody knows
}

// rates are prices of a token. That of hour is for tokens that the cache keeps for an hour.
type rates struct{ input, output, cacheRead, cacheWrite, hour amount }

// longRates are the rates of a whole answer whose input has more tokens than above.
type longRates struct {
	above amount
	rates
}

// rateKeys are the keys of rates in LiteLLM's format.
var rateKeys = [...]string{
	"input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost", "cache_creation_input_token_cost",
	"cache_creation_input_token_cost_above_1hr",
}

// hourFactor is the price of a cache write for an hour, by that of the input: the same for all models of Anthropic, the only
// provider that sells it.
const hourFactor = 2

// readPrices reads prices in the format of LiteLLM's model_prices_and_context_window.json: an object of the models, each with
// dollars per token. A model without a price of its input or of its output is left out.
func readPrices(r io.Reader) (priceTable, error) {
	t := priceTable{}
	d := json.NewDecoder(r)
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.New("it is not a JSON object with a member for each model")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var members map[string]json.RawMessage
		err = d.Decode(&members)
		if err == nil {
			err = t.add(name.(string), members)
		}
		if err != nil {
			return nil, fmt.Errorf("model %q: %w", name, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if len(t) == 0 {
		return nil, errors.New("no model in it has input_cost_per_token and output_cost_per_token")
	}
	return t, nil
}

// add adds the model of a name with its members, if it has prices.
func (t priceTable) add(name string, members map[string]json.RawMessage) error {
	var p price
	own, err := readRates(members, "")
	if err != nil {
		return err
	}
	if own[0] == nil || own[1] == nil {
		return nil
	}
	p.rates = own.rates(rates{})
	for key := range members {
		suffix := longSuffix(key)
		above, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(suffix, "_above_"), "k_tokens"), 10, 32)
		if suffix == "" || err != nil {
			continue
		}
		long, err := readRates(members, suffix)
		if err != nil {
			return err
		}
		p.addLong(amount(above)*1000, long)
	}
	var byProvider struct{ Fast any }
	if json.Unmarshal(members["provider_specific_entry"], &byProvider) == nil {
		fast, _ := byProvider.Fast.(float64)
		p.fast = amount(max(0, fast))
	}
	t[name] = p
	if other := dashed(name); other != name {
		if _, ok := t[other]; !ok {
			t[other] = p
		}
	}
	return nil
}

// longSuffix returns the end of a key that says from how many tokens on a rate holds, "" if there is none.
func longSuffix(key string) string {
	for _, base := range rateKeys {
		if suffix, ok := strings.CutPrefix(key, base); ok && strings.HasSuffix(suffix, "k_tokens") {
			return suffix
		}
	}
	return ""
}

// addLong adds rates for long contexts, those for the longest first.
func (p *price) addLong(above amount, own ownRates) {
	at := 0
	for at < len(p.long) && p.long[at].above > above {
		at++
	}
	if at < len(p.long) && p.long[at].above == above {
		return
	}
	p.long = append(p.long[:at:at], append([]longRates{{above, own.rates(p.rates)}}, p.long[at:]...)...)
}

// ownRates are the rates that a model has keys for, in the order of rateKeys; nil is one that it has none for.
type ownRates [len(rateKeys)]*amount

// readRates reads the rates whose keys end in a suffix.
func readRates(members map[string]json.RawMessage, suffix string) (own ownRates, err error) {
	for i, key := range rateKeys {
		text, ok := members[key+suffix]
		if !ok {
			continue
		}
		if err := json.Unmarshal(text, &own[i]); err != nil {
			return own, fmt.Errorf("%s: %w", key+suffix, err)
		}
		if own[i] != nil && *own[i] < 0 {
			return own, fmt.Errorf("%s is a price below 0", key+suffix)
		}
	}
	return own, nil
}

// rates returns own with the rates that it lacks. Those of a long context are short's, as much dearer as the input is. Without
// any, cached input costs as much as other input.
func (own ownRates) rates(short rates) (r rates) {
	or := func(i int, other amount) amount {
		if own[i] != nil {
			return *own[i]
		}
		return other
	}
	dearer := amount(1)
	r.input, r.output = or(0, short.input), or(1, short.output)
	isShort := short == rates{}
	if isShort {
		short = rates{cacheRead: r.input, cacheWrite: r.input, hour: hourFactor * r.input}
	} else if short.input > 0 {
		dearer = r.input / short.input
	}
	r.cacheRead, r.cacheWrite, r.hour = or(2, short.cacheRead*dearer), or(3, short.cacheWrite*dearer), or(4, short.hour*dearer)
	return r
}

// of returns the rates of an answer.
func (p *price) of(s *Sum) rates {
	input := s.Input + s.CacheRead + s.CacheWrite
	for _, long := range p.long {
		if input > long.above {
			return long.rates
		}
	}
	return p.rates
}
