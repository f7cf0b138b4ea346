package rows

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"exchange/core/event"
)

// The texts of actions are stored, and compared by audits, so they never change. Here they are
// phrased for people. A text of another form, such as a note, or a truncated one, stays unchanged.

// sentences holds the forms of the texts that allWords makes, with their phrasing.
var sentences = []struct {
	form *regexp.Regexp
	say  func(p []string) string // p[0] is the whole text
}{
	{form(`opened account (\S+) \((.*)\)`), sayOpened},
	{form(`made key (\S+) for account (\S+), permissions (\d+), from \[([^\]]*)\]` +
		`(?:, for parallel use with (\d+) nonces)?`), sayKey},
	{form(`revoked key (\S+)`), func(p []string) string { return "revoked the key " + p[1] }},
	{form(`deposit (\d+): (\S+) (\S+) to account (\S+), reference (".*")`),
		func(p []string) string {
			return fmt.Sprintf("credited %s %s %s, reference %s (deposit %s)", p[4], p[2], p[3],
				unquoted(p[5]), p[1])
		}},
	{form(`cancelled order (\d+) of account (\S+) in (\S+)`), func(p []string) string {
		return fmt.Sprintf("cancelled %s's order %s in %s", p[2], p[1], p[3])
	}},
	{form(`withdraw (\d+) \((\S+) (\S+) of account (\S+)\) is (approved|refused)(.*)`),
		func(p []string) string {
			return fmt.Sprintf("%s %s's withdraw %s of %s %s%s", p[5], p[4], p[1], p[2], p[3],
				p[6])
		}},
	{form(`adjustment (\d+): -(\S+) (\S+) of account (\S+), reference (".*"), reason (".*")`),
		func(p []string) string {
			return fmt.Sprintf("took %s %s from %s: %s, reference %s (adjustment %s)", p[2], p[3],
				p[4], unquoted(p[6]), unquoted(p[5]), p[1])
		}},
	{form(`was refused, for account (\S+): (.*)`), func(p []string) string {
		return fmt.Sprintf("was refused a change of %s's: %s", p[1], p[2])
	}},
	{halts, func(p []string) string { return pick(p[2], "halted ", "resumed ") + p[1] }},
	{form(`account (\S+) frozen: (true|false)`),
		func(p []string) string { return pick(p[2], "froze ", "unfroze ") + p[1] }},
	{form(`account (\S+) has the e-mail address (".*"), its withdraws are held until (\S+)`),
		func(p []string) string {
			return fmt.Sprintf("gave %s the e-mail address %s, and held its withdraws until %s",
				p[1], unquoted(p[2]), p[3])
		}},
	{form(`account (\S+) closed, its keys have ended`),
		func(p []string) string { return "closed the account " + p[1] + ", and ended its keys" }},
	{maintenances, sayMaintenance},
	{form(`fees of account (\S+) in (\S+): own (true|false), maker (\S+), taker (\S+)`),
		func(p []string) string {
			return pick(p[3], fmt.Sprintf("gave %s fees of its own in %s: maker %s, taker %s",
				p[1], p[2], p[4], p[5]),
				fmt.Sprintf("gave %s the usual fees of %s again", p[1], p[2]))
		}},
}

var (
	halts        = form(`trading on (\S+) halted: (true|false)`)
	maintenances = form(`maintenance( with cancels)?: (true|false) (".*")`)
)

// form compiles an expression that a whole text must match.
func form(text string) *regexp.Regexp { return regexp.MustCompile(`(?s)^` + text + `$`) }

// Say phrases an action's text for people.
func Say(what string) string {
	for _, s := range sentences {
		if parts := s.form.FindStringSubmatch(what); parts != nil {
			return s.say(parts)
		}
	}
	return what
}

// Closes recognises an action's text about stopping or resuming trading: on a pair, or, for the
// pair "", by maintenance. Otherwise ok is false.
func Closes(what string) (pair string, on, ok bool) {
	if p := halts.FindStringSubmatch(what); p != nil {
		return p[1], p[2] == "true", true
	}
	if p := maintenances.FindStringSubmatch(what); p != nil {
		return "", p[2] == "true", true
	}
	return "", false, false
}

func pick(on, yes, no string) string {
	if on == "true" {
		return yes
	}
	return no
}

// unquoted returns a quoted text without its quotes, unless something in it must be escaped.
func unquoted(quoted string) string {
	if text := quoted[1 : len(quoted)-1]; strconv.Quote(text) == quoted {
		return text
	}
	return quoted
}

func sayOpened(p []string) string {
	if p[2] == "" {
		return "opened the account " + p[1]
	}
	return fmt.Sprintf("opened the account %s, whose mails go to %s", p[1], p[2])
}

func sayKey(p []string) string {
	bits, err := strconv.ParseUint(p[3], 10, 8)
	if err != nil {
		return p[0]
	}
	var may []string
	for _, x := range []struct {
		bit  uint8
		name string
	}{{event.PermissionRead, "read"}, {event.PermissionTrade, "trade"},
		{event.PermissionWithdraw, "withdraw"}} {
		if uint8(bits)&x.bit != 0 {
			may = append(may, x.name)
		}
	}
	text := fmt.Sprintf("gave %s the key %s with the permissions %s", p[2], p[1],
		strings.Join(may, ", "))
	if p[4] != "" {
		text += ", from " + strings.Join(strings.Fields(p[4]), ", ") + " alone"
	}
	if p[5] != "" {
		text += fmt.Sprintf(", for parallel use with %s nonces", p[5])
	}
	return text
}

func sayMaintenance(p []string) string {
	text := pick(p[2], "began maintenance"+p[1], "ended maintenance")
	if p[3] != `""` {
		text += ", with the message to clients: " + unquoted(p[3])
	}
	return text
}
