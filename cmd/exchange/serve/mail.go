package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	netmail "net/mail"
	"path/filepath"
	"time"

	"exchange/actors"
	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/core/state"
	"exchange/gateway/edge"
	"exchange/mail"
)

// mailFolder is the folder of the demo's mails, in its data folder: nothing leaves the machine.
const mailFolder = "mails"

// mailing returns the sender of the engine's mails. Without one, which is nil, they wait in the
// outbox.
func mailing(cfg *config.Config) (func(context.Context, *actors.Mail) error, error) {
	m := &cfg.Mail
	name := "the exchange"
	if a, err := netmail.ParseAddress(m.From); err == nil && a.Name != "" {
		name = a.Name
	}
	switch {
	case cfg.Demo:
		return sendMail("the demo exchange", demoFiles(cfg).Send), nil
	case m.Host == "":
		return nil, nil
	}
	s, err := mail.NewSMTP(mail.Options{Host: m.Host, Port: m.Port, TLS: m.TLS,
		Username: m.Username, Password: m.Password, From: m.From,
		Timeout: config.Ms(m.TimeoutMs), CAFile: m.CAFile})
	if err != nil {
		return nil, err
	}
	return sendMail(name, s.Send), nil
}

func demoFiles(cfg *config.Config) *mail.Files {
	return mail.NewFiles(filepath.Join(cfg.Data, mailFolder))
}

// shownMails is the number of the demo's mails on its page.
const shownMails = 50

// demoMails returns the reader of the demo's mails for their page.
func demoMails(cfg *config.Config) func() ([]edge.DemoMail, error) {
	files := demoFiles(cfg)
	return func() (list []edge.DemoMail, err error) {
		kept, err := files.Newest(shownMails)
		for _, m := range kept {
			list = append(list, edge.DemoMail{Time: m.Time, To: m.To, Subject: m.Subject,
				Text: m.Text})
		}
		return list, err
	}
}

// withMail gives an engine the sender of its mails.
func withMail(cfg *config.Config, log *slog.Logger, o *actors.Options) (err error) {
	if o.Mail, err = mailing(cfg); err != nil {
		return failf(cli.ExitUsage, "mail: %v", err)
	}
	if o.Mail == nil {
		log.Warn(
			"there is no mail server (mail.host): withdrawals are closed, because no code could " +
				"be mailed")
	}
	return nil
}

// sendMail words the engine's mails, in the name of the exchange.
func sendMail(exchange string, send func(context.Context, mail.Message) error) func(context.Context,
	*actors.Mail) error {
	return func(ctx context.Context, m *actors.Mail) error {
		message := mail.Message{ID: m.MessageID(), To: m.To}
		message.Subject, message.Text = inWords(exchange, m)
		err := send(ctx, message)
		if errors.Is(err, mail.ErrNever) {
			return fmt.Errorf("%w: %w", err, actors.ErrNeverMailed)
		}
		return err
	}
}

// inWords returns the subject and the text of a mail.
func inWords(exchange string, m *actors.Mail) (subject, text string) {
	switch c := &m.Change; {
	case c.Account == 0:
	case c.Kind == state.KeysLost:
		return mail.KeysLost{Exchange: exchange, To: m.To, Account: m.Account}.Text()
	default:
		return mail.AddressChange{Exchange: exchange, To: m.To, New: c.Kind == state.NewAddress,
			Account: m.Account, HeldUntil: time.UnixMicro(c.HoldEndsUs)}.Text()
	}
	d := &m.Withdrawal
	w := mail.Withdrawal{Exchange: exchange, To: m.To, ID: d.ID, Amount: d.Amount.String(),
		Currency: m.Currency, Address: d.Address}
	if m.Code != "" {
		return w.Code(m.Code, m.Valid)
	}
	return w.Refused(d.Details)
}
