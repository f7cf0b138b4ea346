// Package mail sends the mails of the exchange: the code that confirms a withdrawal, and word that
// one was refused, or that an account has another e-mail address, or has lost API keys.
//
// Withdrawal, AddressChange and KeysLost make the texts. SMTP.Send sends a Message; in a demo
// Files.Send writes it to a folder instead. Both send one message once, and their errors say
// clearly why they did not. The caller keeps messages and tries again. nil means that the server
// has taken the message over and is answerable for it. After an error the server may have taken the
// message over all the same, when its last answer was lost. So a message can arrive twice, with one
// Message-ID, by which mail programs recognise the repeat. After ErrNever trying again is useless.
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
//	texts.go    the words of a mail about a withdrawal
//	message.go  one message, its bounds, and its form on the wire
//	smtp.go     messages to a server
//	files.go    messages as files
package mail
