// Package mail sends the mails of the exchange: the code that confirms a withdrawal, and notice of
// a refused withdrawal, of a changed e-mail address, or of lost API keys.
//
// Withdrawal, AddressChange and KeysLost make the texts. SMTP.Send sends a Message; in a demo
// Files.Send writes it to a folder instead. Both send one message once, and their errors give the
// cause. The caller keeps messages and retries. nil means that the server has accepted
// responsibility for the message. After an error the server may still have accepted it, if its last
// answer was lost. So a message can arrive twice, with one Message-ID, by which mail programs
// recognise the repeat. After ErrNever a retry is useless.
//
//	s, err := mail.NewSMTP(mail.Options{
//		Host: "smtp.example.org", From: "exchange@example.org", Timeout: time.Minute})
//	subject, text := mail.Withdrawal{...}.Code("7K2M-9QXD-04TB", 30*time.Minute)
//	err = s.Send(ctx, mail.Message{
//		ID: "7", To: "alice@example.org", Subject: subject, Text: text})
//
// Everything is bounded: the lengths of a message's parts, the time of a Send, and the length of a
// server's answers. Nothing in a message can become a header: see Message. No error shows the
// password, even if a server's answer does.
//
//	texts.go    the words of a mail
//	message.go  one message, its bounds, and its form on the wire
//	smtp.go     messages to a server
//	files.go    messages as files
package mail
