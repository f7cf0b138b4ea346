package config

// mailOptions configure the mail server and the sending of mails.
var mailOptions = []Option{
	{
		Key:   "mail.host",
		Brief: "SMTP server of the exchange's mails",
		Help: `The SMTP server that takes the exchange's mails: the codes that confirm withdrawals, and word of refused
			ones. A name or an IP address without a port. Empty: no mail is sent, what is still of use waits until a start
			with a server, and no new withdraw is taken.
			With demo mails are written as files under the data folder, and no server is asked.`,
		at: func(c *Config) any { return &c.Mail.Host },
	},
	{
		Key: "mail.port", Default: "0", min: 0, max: 65_535,
		Brief: "port of the SMTP server",
		Help:  `The port of mail.host. 0: the usual one for mail.tls, which is 587 for required, 465 for implicit and 25 for none.`,
		at:    func(c *Config) any { return &c.Mail.Port },
	},
	{
		Key: "mail.tls", Default: "required", choices: []string{"required", "implicit", "none"},
		Brief: "how the connection to the SMTP server is encrypted",
		Help: `How the connection to mail.host is encrypted. required: it begins in clear text and changes to TLS (STARTTLS)
			before any command; a server that cannot is not used. implicit: TLS from the first byte. none: no encryption, so the codes
			can be read in transit; meant for a server on this machine, and a password is sent to no other.`,
		at: func(c *Config) any { return &c.Mail.TLS },
	},
	{
		Key:   "mail.username",
		Brief: "user name at the SMTP server",
		Help:  `The user name at mail.host; needs mail.password. Empty: the exchange does not authenticate.`,
		at:    func(c *Config) any { return &c.Mail.Username },
	},
	{
		Key:   "mail.password",
		Brief: "password at the SMTP server",
		Help: `The password of mail.username. It is never shown. Best given in EXCHANGE_MAIL_PASSWORD, because a file is copied more
			easily than an environment. If it stands in the file, let no other user read that.`,
		at:     func(c *Config) any { return &c.Mail.Password },
		redact: func(string) string { return "***" },
	},
	{
		Key:   "mail.from",
		Brief: "sender of the exchange's mails",
		Help: `The address that mails come from, such as exchange@example.org or "Example Exchange <exchange@example.org>". Mails
			that cannot be delivered come back to it. Needed with mail.host. Its domain is part of every mail's Message-ID, by which a
			mail that was sent twice is recognised: keep it.`,
		at: func(c *Config) any { return &c.Mail.From },
	},
	{
		Key: "mail.timeout_ms", Default: "30000", min: 100, max: 600_000,
		Brief: "how long sending one mail may take, in ms",
		Help: `How long sending one mail may take in all, in milliseconds. After it the mail counts as not sent and is tried again
			later. Some servers let strangers wait for many seconds on purpose; less than that never gets a mail through.`,
		at: func(c *Config) any { return &c.Mail.TimeoutMs },
	},
	{
		Key:   "mail.ca_file",
		Brief: "certificates of the authorities that the SMTP server is trusted by",
		Help: `A file of certificates in PEM form: the server's certificate must be signed by one of them, or be one of them. For a
			server with a certificate of one's own making. Empty: the authorities that this machine trusts.`,
		at: func(c *Config) any { return &c.Mail.CAFile },
	},
}
