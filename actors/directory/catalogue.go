package directory

import (
	"fmt"
	"slices"

	"exchange/core/state"
)

// A Catalogue holds the pairs and the currencies. It is immutable.
type Catalogue struct {
	pairs      []*Pair // in configured order
	byName     map[string]*Pair
	byNumber   []*Pair           // by number-1; nil: not configured
	markets    []MarketName      // by number-1, all ever configured
	ever       map[string]uint16 // their numbers, by name
	currencies []Currency        // in configured order
	codes      []string          // of currencies by number-1, all ever configured
}

// A MarketName holds the names of a pair and of its currencies.
type MarketName struct {
	Name, Base, Quote string
	base, quote       uint16
}

// NewCatalogue combines the configuration with the numbers assigned in the state. A tick or a step
// that is not configured is one unit of the last digit. The pairs have no books yet.
func NewCatalogue(pairs []PairRules, currencies []Currency, s *state.State) *Catalogue {
	c := &Catalogue{byName: map[string]*Pair{}, byNumber: make([]*Pair, len(s.Pairs())),
		currencies: currencies}
	for _, known := range s.Currencies() {
		c.codes = append(c.codes, known.Code)
	}
	c.ever = make(map[string]uint16)
	for _, p := range s.Pairs() {
		c.ever[p.Name] = p.Number
		c.markets = append(c.markets,
			MarketName{p.Name, c.codes[p.Base-1], c.codes[p.Quote-1], p.Base, p.Quote})
	}
	for i := range pairs {
		market := s.Pair(c.ever[pairs[i].Name])
		p := NewPair(pairs[i], market.Number, market.Base, market.Quote)
		p.halted.Store(market.Halted)
		c.pairs = append(c.pairs, p)
		c.byName[p.Name], c.byNumber[p.Number-1] = p, p
	}
	return c
}

// Pairs are the configured pairs in order. Read only.
func (c *Catalogue) Pairs() []*Pair { return c.pairs }

// Currencies are the configured currencies in order. Read only.
func (c *Catalogue) Currencies() []Currency { return c.currencies }

// Pair returns the configured pair of that name, nil if there is none.
func (c *Catalogue) Pair(name []byte) *Pair { return c.byName[string(name)] }

// PairNamed is Pair with a string.
func (c *Catalogue) PairNamed(name string) *Pair { return c.byName[name] }

// EverPair returns the number of the pair of that name, even if it is no longer configured: its
// rows are kept. 0: never configured.
func (c *Catalogue) EverPair(name []byte) uint16 { return c.ever[string(name)] }

// PairByNumber returns the configured pair with that number, which is in use.
func (c *Catalogue) PairByNumber(number uint16) *Pair { return c.byNumber[number-1] }

// Configured returns the configured pair with that number, nil if there is none.
func (c *Catalogue) Configured(number uint16) *Pair {
	if number == 0 || int(number) > len(c.byNumber) {
		return nil
	}
	return c.byNumber[number-1]
}

// Market returns the names of the pair with that number, even if it is no longer configured.
func (c *Catalogue) Market(number uint16) MarketName {
	if number == 0 || int(number) > len(c.markets) {
		return MarketName{}
	}
	return c.markets[number-1]
}

// PairCurrencies returns the numbers of a pair's currencies, even if it is no longer configured.
func (c *Catalogue) PairCurrencies(number uint16) (base, quote uint16) {
	m := c.markets[number-1]
	return m.base, m.quote
}

// Currency returns the configured currency with that code, nil if there is none. Read only.
func (c *Catalogue) Currency(code []byte) *Currency {
	for i := range c.currencies {
		if c.currencies[i].Code == string(code) {
			return &c.currencies[i]
		}
	}
	return nil
}

// CurrencyNumber returns the number of the configured currency with that code, 0 if there is none.
func (c *Catalogue) CurrencyNumber(code string) uint16 {
	if known := c.Currency([]byte(code)); known != nil {
		return known.Number
	}
	return 0
}

// EverCurrency returns the number of the currency with that code, even if it is no longer
// configured; 0: never configured.
func (c *Catalogue) EverCurrency(code []byte) uint16 {
	return uint16(slices.Index(c.codes, string(code)) + 1)
}

// NoPair returns why there is no pair of that name.
func (c *Catalogue) NoPair(name string) string {
	if c.EverPair([]byte(name)) != 0 {
		return fmt.Sprintf("pair %s is not configured any more, and has no open orders: put it "+
			"back into the configuration first", name)
	}
	return fmt.Sprintf("there is no pair %.80q", name)
}

// NoCurrency returns why there is no currency of that code.
func (c *Catalogue) NoCurrency(code string) string {
	if c.EverCurrency([]byte(code)) != 0 {
		return fmt.Sprintf("currency %s is not configured any more, and no account holds any of "+
			"it: put it back into the configuration first", code)
	}
	return fmt.Sprintf("there is no currency %.80q", code)
}

// CurrencyCode returns the code of the currency with that number, even if it is no longer
// configured; "": never configured.
func (c *Catalogue) CurrencyCode(number uint16) string {
	if number == 0 || int(number) > len(c.codes) {
		return ""
	}
	return c.codes[number-1]
}
