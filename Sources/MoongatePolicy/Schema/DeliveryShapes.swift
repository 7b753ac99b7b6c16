import MoongateCore

/// The ways for messages to leave, field by field.
extension TableShape {
  static let outbox = TableShape(
    name: "Outbox", summary: "Messages that are shown and not sent.",
    entries: [
      .optional("allow_public", "boolean", "whether it may be used where public_url is not this machine", .flag(false))
    ])

  static let smtp = TableShape(
    name: "SMTP", summary: "A mail server.",
    entries: [
      .required("url", "string", "\"smtps://mail.example.com\", or \"smtp://mail.example.com:587\" for STARTTLS"),
      .required("from", "string", "who mails are from, such as \"Moongate <no-reply@example.com>\""),
      .optional("user", "string|moongate.Secret", "the name to sign in with"),
      .optional("password", "moongate.Secret", "env \"NAME\" or file \"path\""),
      .optional(
        "starttls", "boolean",
        "whether smtp:// must become TLS before anything is said; true unless the server is this machine"),
      .optional("ca", "string", "a PEM file of the authorities to believe, in place of the system's"),
    ])

  static let webhook = TableShape(
    name: "Webhook", summary: "A site that takes messages as JSON: {\"to\",\"text\"}.",
    entries: [
      .required("url", "string", "where to post, such as \"https://sms.example.com/send\""),
      .optional(
        "headers", "table<string, string|moongate.Secret>",
        "headers to send along, as in { [\"Authorization\"] = env \"SMS_TOKEN\" }"),
    ])

  static let twilio = TableShape(
    name: "Twilio", summary: "Twilio's Messages API.",
    entries: [
      .required("account_sid", "string|moongate.Secret", "AC and 32 characters"),
      .required("auth_token", "moongate.Secret", "env \"NAME\" or file \"path\""),
      .required("from", "string", "a number such as \"+15550100\", a name, or a messaging service (MG…)"),
      .optional("url", "string", "an API that speaks like it", .text(TwilioSettings.usualURL)),
    ])
}
