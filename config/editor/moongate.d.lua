---@meta
-- What Moongate's files may say, for editors with lua-language-server: open config/ as a folder.
-- Written by `moongate policy types`; a test holds it against the program. Do not edit it.

---@alias moongate.Duration string a duration: "90s", "10m", "1h30m" or "7d"
---@alias moongate.Durations moongate.Duration|moongate.Vary|(moongate.Duration|moongate.Vary)[]
---@alias moongate.Decide fun(f: moongate.PolicyFacts): moongate.Decision

---@class (exact) moongate.File what a file returns
---@class (exact) moongate.Secret made by env, file or credential
---@class (exact) moongate.Delivery made by outbox, smtp, webhook or twilio
---@class (exact) moongate.AuditSink made by file, syslog or webhook
---@class (exact) moongate.Tracing made by otlp
---@class (exact) moongate.Exec made by exec
---@class (exact) moongate.Instance made by the name of a provider, as in phone_otp { … }
---@class (exact) moongate.Vary made by vary
---@class (exact) moongate.AnyOf made by any_of
---@class (exact) moongate.Members made by members
---@class (exact) moongate.Fallback made by fallback
---@class (exact) moongate.Statement made by guarantee
---@class (exact) moongate.Case made by case
---@class (exact) moongate.Act one word of a case
---@class (exact) moongate.Decision allow, deny "reason" or require_also "provider"

---The gateway itself: where it listens, where its state lies, how messages leave.
---@class (exact) moongate.Gateway
---@field listen? string where the public listener accepts connections: an address, such as "127.0.0.1:8080" (default: "127.0.0.1:8080")
---@field admin? string|moongate.Admin where the admin listener accepts connections: an address, such as "127.0.0.1:9901" (default: "127.0.0.1:9901")
---@field public_url string how people reach the gateway, such as "https://auth.example.com"
---@field tls? moongate.TLS the certificate of the public listener; without it the listener speaks HTTP: a table with cert and key
---@field store? string|moongate.Secret where state is kept, such as "sqlite:data/moongate.db" (default: "sqlite:data/moongate.db")
---@field key? moongate.Secret file "data/master.key", env "MOONGATE_KEY" or credential "master.key" (default: file "data/master.key")
---@field region? string the country of phone numbers that are typed without a country code: a country in two letters, such as "IN" (default: "IN")
---@field trusted_proxies? string[] the proxies in front whose X-Forwarded headers are believed: a list of address blocks
---@field redirect_hosts? string[] further hosts that a sign-in may return to: a list of hosts
---@field cookie_domain? string the domain of cookies, so that its subdomains share a sign-in: a domain, such as "example.com"
---@field domains? string[] the root domains that share one sign-in, such as { "example.com", "example.org" }
---@field cors_origins? string[] the origins whose scripts may call the API: a list of origins
---@field hsts? moongate.Duration|false how long browsers are to use https alone, or false (default: "365d")
---@field service? string what messages call us (default: "Moongate")
---@field brand? moongate.Brand what pages show
---@field languages? string[] the languages of pages and messages, such as { "en", "hi" }
---@field risk_budget? string a probability, such as "0.1% per 30d"
---@field limits? moongate.ConnectionLimits bounds on connections
---@field drain? moongate.Duration how long open connections may finish at the end, such as "30s" (default: "10s")
---@field audit? moongate.AuditSink[] where copies of the audit trail go, as in { file { path = "data/audit.log" } }
---@field tracing? moongate.Tracing where spans of requests go, as in otlp { url = "http://127.0.0.1:4318" }
---@field gate? moongate.Gate what a reload must not change, as in { replay = "24h", most_flips = "0.5%" }
---@field providers moongate.Providers the providers that this gateway uses, with their settings: a table of providers, as in { phone_otp = { sms = outbox() } }

---An admin listener that other machines reach.
---@class (exact) moongate.Admin
---@field address string where the admin listener accepts connections: an address, such as "10.0.0.5:9901"
---@field token? moongate.Secret what each call must carry as Authorization: Bearer, as in env "MOONGATE_ADMIN_TOKEN"
---@field tokens? moongate.AdminToken[] a list of tokens with names and roles, as in { { name = "grafana", role = "read", token = env "…" } }

---A token of the admin listener, with the name by which the audit trail knows who acted.
---@class (exact) moongate.AdminToken
---@field name string the name by which the audit trail knows the caller: a name, such as "grafana"
---@field role "read"|"act" what the token allows: read only, or read and change: "read" or "act"
---@field token moongate.Secret what calls carry as Authorization: Bearer: a secret, as in env "GRAFANA_TOKEN"

---A file with an event a line.
---@class (exact) moongate.AuditFile
---@field path string a file, such as "data/audit.log"
---@field rotate? string a size at which a new file is begun, such as "100MiB" (default: "100MiB")
---@field keep? integer how many older files are kept (default: 10)

---A syslog server.
---@class (exact) moongate.AuditSyslog
---@field address? string where the syslog server listens: "/dev/log", or "tcp://logs.example.com:514" (default: "/dev/log")
---@field facility? "auth"|"authpriv"|"daemon"|"local0"|"local1"|"local2"|"local3"|"local4"|"local5"|"local6"|"local7" the facility that messages carry: a facility of syslog (default: "authpriv")

---A site that takes events as JSON lines, signed.
---@class (exact) moongate.AuditWebhook
---@field url string where to post, such as "https://siem.example.com/moongate"
---@field secret moongate.Secret the key of the signature, as in env "AUDIT_SECRET"

---A collector that takes spans by OTLP over HTTP, as JSON.
---@class (exact) moongate.OTLP
---@field url string the collector, such as "http://127.0.0.1:4318"
---@field sample? number the share of requests that are recorded, from 0 to 1 (default: 0.01)
---@field headers? table<string, string|moongate.Secret> headers to send along, as in { ["Authorization"] = env "OTLP_TOKEN" }

---A reload that would change more of the recorded decisions than this is refused.
---@class (exact) moongate.Gate
---@field replay? moongate.Duration how far back decisions are played again, at most "7d" (default: "24h")
---@field most_flips? string which share of them may change, such as "0.5%" (default: "0.5%")
---@field flips_accepted? string the change that may go through all the same, as a refused reload names it

---The gateway's own certificate.
---@class (exact) moongate.TLS
---@field cert string the certificate with its chain: a PEM file
---@field key string the private key of the certificate: a PEM file

---What pages show.
---@class (exact) moongate.Brand
---@field name? string the name that pages show: a text
---@field logo? string the picture that pages show: a file or an address
---@field primary? string the colour of buttons and links: a colour, such as "#0D7377"
---@field support? string where pages send people who need help: a link: mailto: or https:
---@field terms? string a link to the terms of service: https:
---@field privacy? string a link to the privacy policy: https:

---Bounds on connections, and on flows in which nobody has proved anything.
---@class (exact) moongate.ConnectionLimits
---@field connections? integer how many connections of clients may be open at once: a whole number (default: 50000)
---@field per_ip? moongate.AddressLimits bounds per address
---@field flows? moongate.FlowLimits bounds on flows in which nobody has proved anything
---@field body_rate? string|false the least of a body in each window, such as "1KiB/10s", or false (default: "1KiB/10s")

---Bounds on one client address; requests are unlimited where nothing is said.
---@class (exact) moongate.AddressLimits
---@field connections? integer how many connections one client address may have open at once: a whole number (default: 1000)
---@field requests? string how many requests one client address may make: a rate, such as "100/s"

---How many flows there may be in which nobody has proved anything. Beyond it the address with the most loses its oldest.
---@class (exact) moongate.FlowLimits
---@field count? integer how many such flows may be open at once: a whole number, from 1000 (default: 100000)
---@field bytes? string how much memory such flows may take: a size, such as "64MiB" (default: "64MiB")

---A provider that is another program, started and supervised by the gateway; its own settings stand beside these.
---@class moongate.Program
---@field [integer] string the program, then its arguments
---@field env? table<string, string|moongate.Secret> what its environment holds, as in { TOKEN = env "SMS_TOKEN" }
---@field timeout? moongate.Duration how long it may take for one call, at most "30s" (default: "5s")

---Messages that are shown and not sent.
---@class (exact) moongate.Outbox
---@field allow_public? boolean whether it may be used where public_url is not this machine (default: false)

---A mail server.
---@class (exact) moongate.SMTP
---@field url string "smtps://mail.example.com", or "smtp://mail.example.com:587" for STARTTLS
---@field from string who mails are from, such as "Moongate <no-reply@example.com>"
---@field user? string|moongate.Secret the name to sign in with
---@field password? moongate.Secret env "NAME" or file "path"
---@field starttls? boolean whether smtp:// must become TLS before anything is said; true unless the server is this machine
---@field ca? string a PEM file of the authorities to believe, in place of the system's

---A site that takes messages as JSON: {"to","text"}.
---@class (exact) moongate.Webhook
---@field url string where to post, such as "https://sms.example.com/send"
---@field headers? table<string, string|moongate.Secret> headers to send along, as in { ["Authorization"] = env "SMS_TOKEN" }

---Twilio's Messages API.
---@class (exact) moongate.Twilio
---@field account_sid string|moongate.Secret AC and 32 characters
---@field auth_token moongate.Secret env "NAME" or file "path"
---@field from string a number such as "+15550100", a name, or a messaging service (MG…)
---@field url? string an API that speaks like it (default: "https://api.twilio.com")

---One provider's codes, timers and limits. What is left out keeps the provider's default.
---@class (exact) moongate.Policy
---@field code? moongate.Code what a code looks like
---@field timers? moongate.Timers waits between messages: a table of timers
---@field limits? table<string, moongate.Limit> limits by names of your own choice: a table of limits
---@field unknown_account? "reveal"|"conceal" whether answers reveal that no account has the identifier: one of `conceal` and `reveal` (default: "conceal")
---@field message? string what the message with the code says: the text with {code} in it
---@field send? moongate.Decide decides whether a code is sent: a function of facts
---@field verify? moongate.Decide decides whether an answer is compared: a function of facts
---@field reasons? table<string, string> what people read of deny "reason", as in { country_not_served = "We do not serve this country yet." }

---What a code looks like and how long it lives.
---@class (exact) moongate.Code
---@field length? integer how long a code is: 4 to 10 characters (default: 6)
---@field alphabet? "digits"|"letters"|"alphanumeric" which characters a code is made of: one of `alphanumeric`, `digits` and `letters` (default: "digits")
---@field ttl? moongate.Duration how long a code can be used: a duration, such as "15m" (default: "10m")

---Waits between messages.
---@class (exact) moongate.Timers
---@field resend_after? moongate.Durations how long before the first resend, the second, …

---At most `max` events in any `window`, counted `per` key.
---@class (exact) moongate.Limit
---@field on "send"|"verify"|"begin"|"register" which action is counted: `send`, `verify`, `begin` or `register`
---@field per "phone"|"email"|"identifier"|"account"|"ip"|"network"|"country"|"prefix"|"device"|"flow"|"challenge"|"provider"|"global" what has a counter of its own: what is counted by
---@field max integer|moongate.Vary how many events are allowed: how many, from 1
---@field window? moongate.Duration|moongate.Vary the time in which events are counted: a duration, such as "15m"
---@field counts? "all"|"failures"|"consecutive_failures" which events are counted: one of `all`, `consecutive_failures` and `failures`
---@field lock? moongate.Durations how long requests are refused when the limit is full of failures; a list grows with each lock: a duration, or a list that grows, such as { "15m", "1h" }
---@field disable? boolean whether reaching the limit disables the credential until an operator re-enables it: true or false (default: false)

---What a flow is for, and its steps in order.
---@class (exact) moongate.Flow
---@field enabled? boolean false: there is no such flow, not even one that comes with a provider (default: true)
---@field purpose? "sign_in"|"register"|"step_up"|"verify"|"change"|"join"|"set"|"disable"|"reset"|"unlock" what completing the flow does
---@field provider? string the provider whose factor the flow is about, such as "pin"
---@field identifier? "phone"|"email"|"federated" which kind of identifier the flow adds, changes or removes: the kind of identifier that the flow is about
---@field account "existing"|"new"|"any" whose flow it is: "existing", "new" or "any"
---@field steps (string|moongate.AnyOf|moongate.Fallback|moongate.Step)[] what has to be passed, in order: a list of steps
---@field lifetime? moongate.Duration how long a person has to complete the flow: a duration, such as "15m" (default: "15m")
---@field session? moongate.Session how long a session lives
---@field next? moongate.Next where a person goes when it is complete

---A provider, or a choice of them, perhaps with a condition.
---@class (exact) moongate.Step
---@field [integer] string|moongate.AnyOf|moongate.Fallback the provider
---@field skippable? boolean whether a person may skip the step: true or false (default: false)
---@field when? fun(f: moongate.FlowFacts): boolean? decides whether the step is needed: a function of facts

---How long a session lives.
---@class (exact) moongate.Session
---@field lifetime? moongate.Duration how long a session lives at most: a duration, such as "15m" (default: "12h")
---@field idle? moongate.Duration how long a session lives without a request: a duration, such as "15m" (default: "1h")

---Where a person goes when a flow is complete.
---@class (exact) moongate.Next
---@field new? string where a new account goes: a path, such as "/home" (default: "/")
---@field returning? string where an existing account goes: a path, such as "/home" (default: "/")

---Requests of one kind: where they go and what they need. The first that matches wins.
---@class (exact) moongate.Route
---@field host? string the host that requests are for; every host where it is left out: a host, such as "wallet.example.com"
---@field path string the paths that the route matches: a pattern, such as "/pay/**"
---@field methods? string[] the methods that the route matches; all where it is left out: a list, such as { "GET", "POST" }
---@field to string|string[] where requests go: an upstream, such as "http://127.0.0.1:3000"
---@field allow? boolean whether requests need no session: true: open to all (default: false)
---@field flow? string the flow that people without a session begin: the name of a flow (default: "login")
---@field require? moongate.Requirement what a session must have
---@field tokens? boolean|moongate.RouteTokens the tokens of programs that it takes: true, { "ci" } or { personal = true }
---@field decide? fun(f: moongate.RouteFacts): moongate.Decision decides about each request: a function of facts
---@field timeout? moongate.Duration how long an upstream may be silent: a duration, such as "15m" (default: "30s")
---@field websocket? boolean whether requests may become WebSockets: true or false (default: false)
---@field headers? table<string, string> headers to set, as in { ["X-Tenant"] = "demo" }
---@field body? string the largest body of a request: a size, such as "64MiB"
---@field body_rate? string|false the least of a body in each window, such as "1KiB/10s", or false

---The tokens that a route takes: service tokens by their names, and those that people have made.
---@class (exact) moongate.RouteTokens
---@field [integer] string the name of a service token
---@field personal? boolean true: the tokens that people have made on their account page (default: false)

---What a session must have: a group, a passed provider or a verified address; a group together with either.
---@class (exact) moongate.Requirement
---@field group? string|moongate.AnyOf the group that the account must be in: the name of a group, or any_of { … } of several
---@field passed? string the provider that the session must have passed: the name of a provider
---@field within? moongate.Duration how long ago the provider was passed at most: a duration, such as "15m"
---@field email_verified? boolean whether the account must have a verified email address: true or false

---What holds for every account, whichever flow opens its session.
---@class (exact) moongate.Accounts
---@field sign_in? (string|moongate.AnyOf|moongate.SignInRequirement)[] a list of steps that every session of an existing account requires
---@field offer? (string|moongate.Offer)[] a list of factors that people are offered to set up after a sign-in on the pages
---@field change_within? moongate.Duration how recent a proof must be for a change of the account, such as "10m" (default: "10m")
---@field recovery_delay? moongate.Duration how long a new number or address cannot reset anything, such as "24h" (default: "24h")
---@field unverified_lifetime? moongate.Duration how long an account without a verified identifier is kept unused, such as "30d" (default: "30d")
---@field groups? table<string, moongate.Members|fun(f: moongate.EntitlementFacts): boolean?> a table of groups, as in { ops = members() }
---@field claims? table<string, fun(f: moongate.EntitlementFacts): string|number|boolean|nil> a table of functions, as in { plan = function(f) return "new" end }

---A provider, or a choice of them, that every session requires, perhaps with a condition.
---@class (exact) moongate.SignInRequirement
---@field [integer] string|moongate.AnyOf the provider
---@field when? fun(f: moongate.FlowFacts): boolean? decides whether the provider is required: a function of facts
---@field enroll? boolean true: an account that lacks the factor sets it up on the way (default: false)

---A provider whose factor people are offered to set up, how often, and perhaps a condition.
---@class (exact) moongate.Offer
---@field [integer] string the provider
---@field every? moongate.Duration the least time between two offers to one account, such as "30d" (default: "30d")
---@field when? fun(f: moongate.FlowFacts): boolean? decides whether the offer is made: a function of facts

---What is always true: of the sessions of an account, or of every session that passes a route.
---@class (exact) moongate.Guarantee
---@field account? moongate.GuaranteeAccount which accounts it is about; all where it is left out
---@field client? moongate.GuaranteeClient which devices it is about; all where it is left out
---@field session? moongate.GuaranteeSession what a session has passed when it begins
---@field route? string a pattern of paths, such as "/admin/**"
---@field host? string a host, such as "admin.example.com"; with `route`
---@field passed? string|moongate.AnyOf a provider that a session has passed; with `route`
---@field factors? integer how many different providers a session has passed, from 1; with `route`
---@field within? moongate.Duration how long ago at most, such as "5m"; with `passed`
---@field group? string|moongate.AnyOf a group that every requester is in, or any_of { … } of several; with `route`

---Facts of the account as the flow finds it, spelled as functions read them in f.account.
---@class (exact) moongate.GuaranteeAccount
---@field exists? boolean whether the account exists when the flow begins: true or false
---@field has_pin? boolean whether the account has a PIN: true or false
---@field has_email? boolean whether the account has an email address: true or false
---@field email_verified? boolean whether its email address is verified: true or false
---@field phone_verified? boolean whether its phone number is verified: true or false
---@field factors? table<string, boolean> providers that keep a secret of the account, as in { totp = true }

---Facts of the device, spelled as functions read them in f.client.
---@class (exact) moongate.GuaranteeClient
---@field new_device? boolean whether the device is new to the account: true or false
---@field network_changed? boolean whether the device is in another network than last time: true or false

---What a session has passed when it begins.
---@class (exact) moongate.GuaranteeSession
---@field passed? string|moongate.AnyOf the name of a provider, or any_of { … }
---@field factors? integer how many different providers, from 1

---Whether there is an account of the names said so far, and what it has.
---@class (exact) moongate.CaseAccount
---@field exists? boolean whether there is one (default: true)
---@field age? moongate.Duration how long ago the account was created: a duration, such as "15m"
---@field idle? moongate.Duration how long ago the account was last used: a duration, such as "15m"
---@field phone? string a phone number that it holds besides
---@field email? string an email address that it holds besides
---@field phone_verified? boolean whether its phone number is verified: true or false (default: true)
---@field email_verified? boolean whether its email address is verified: true or false (default: true)
---@field has_pin? boolean whether it has a PIN: true or false (default: false)
---@field pin? string the PIN that it has
---@field password? string the password that it has
---@field factors? table<string, string> the secrets that it has at other providers, as in { door_pin = "739154" }
---@field locked? boolean true: an operator locked it (default: false)

---Where requests come from, from here on.
---@class (exact) moongate.CaseClient
---@field ip? string the address that requests come from: an address, such as "203.0.113.7"
---@field user_agent? string what the browser calls itself
---@field device? string a name for the device, which remembers where it has signed in; without one every request is from a new device
---@field known? boolean true: a device that has signed in to the account before; false: a new one

---The service token of a program that requests come from.
---@class (exact) moongate.CaseToken
---@field name string its name, as a route's `tokens` says it, such as "ci"
---@field groups? string[] the groups that it is in, as in { "ops" }

---How a code is asked for.
---@class (exact) moongate.CaseSend
---@field until_sent? boolean true: wait until a code goes out (default: false)

---How many wrong codes are entered.
---@class (exact) moongate.CaseWrong
---@field until_locked? boolean true: until a lock stands (default: false)
---@field times? integer how many

---What is waited for: one of these.
---@class (exact) moongate.CaseWait
---@field until_unlocked? boolean true: until the lock is over (default: false)
---@field until_resend? boolean true: until another code may be asked for (default: false)
---@field until_expired? boolean true: until the code is dead (default: false)

---A request for a page behind the gateway, signed in as by the flow that was completed last.
---@class (exact) moongate.CaseRequest
---@field method? string in capitals (default: "GET")
---@field host? string a host, such as "wallet.example.com"; public_url's where it is left out
---@field path string what is asked for, such as "/pay/1"
---@field query? string what stands behind ? (default: "")

---What the answer before it must be.
---@class (exact) moongate.CaseExpect
---@field status? integer|"pending"|"complete"|"failed"|"refused" an HTTP status, or how the flow stands
---@field code? string the code of a refusal, such as "too_many_attempts"
---@field retry_after? moongate.Duration how long the answer says to wait: a duration, such as "15m"
---@field attempts_left? integer how many wrong codes before a lock
---@field resends_left? integer how many more codes may be asked for
---@field field? string the field that is wrong, such as "phone"
---@field messages? integer how many messages went out so far
---@field step? string the provider that is due
---@field locked? boolean whether a lock stands
---@field waiting? boolean whether the step waits for an approval elsewhere
---@field next? string where the person goes, such as "/home"

---What `phone_otp` needs.
---@class (exact) moongate.Provider.phone_otp
---@field sms moongate.Delivery How SMS leave: outbox() keeps them for the demo.
---@field title? string what people read as its name, as in "SMS (USA)"

---What `email_code` needs.
---@class (exact) moongate.Provider.email_code
---@field mail moongate.Delivery How mail leaves: outbox() keeps it for the demo.
---@field title? string what people read as its name, as in "SMS (USA)"

---What `pin` needs.
---@class (exact) moongate.Provider.pin
---@field title? string what people read as its name, as in "SMS (USA)"

---What `password` needs.
---@class (exact) moongate.Provider.password
---@field title? string what people read as its name, as in "SMS (USA)"

---What `google_oauth` needs.
---@class (exact) moongate.Provider.google_oauth
---@field issuer? string The OpenID provider, as its discovery document names itself; Google's own unless said otherwise.
---@field client_id string Who we are to the provider: what it gave when we were registered there.
---@field client_secret moongate.Secret What proves it: env "NAME" or file "path".
---@field apps? string The client ids of your own apps, separated by spaces: ID tokens that were made for them are taken too.
---@field title? string what people read as its name, as in "SMS (USA)"

---What `totp` needs.
---@class (exact) moongate.Provider.totp
---@field issuer? string What authenticator apps list the account under. (default: "Moongate")
---@field drift? number How many codes before and after the current one are taken, for clocks that are off: 0 or 1. (default: 1)
---@field title? string what people read as its name, as in "SMS (USA)"

---What `passkey` needs.
---@class (exact) moongate.Provider.passkey
---@field rp_id? string The domain that passkeys are for: the host of public_url, which is the default, or a domain above it.
---@field rp_name? string What devices call the site. (default: "Moongate")
---@field origins? string[] Further origins whose pages or apps may use the passkeys, such as https://app.example.com or android:apk-key-hash:….
---@field user_verification? "required"|"preferred"|"discouraged" Whether the device asks for its PIN or a fingerprint. (default: "required")
---@field attestation? "none"|"packed" packed accepts a passkey only with a packed attestation that verifies; none accepts every passkey. (default: "none")
---@field attestation_roots? string Certificates of manufacturers in PEM. With it, attestation = "packed" accepts only authenticators whose certificates lead to one of them.
---@field timeout? number How many seconds the person has to use the passkey. (default: 120)
---@field aaguids? string[] The models of authenticators that are accepted, as UUIDs; empty accepts all.
---@field counter? "warn"|"refuse" What happens when a signature counter does not go up, as that of a copied authenticator: warn logs it, refuse refuses the passkey. (default: "warn")
---@field title? string what people read as its name, as in "SMS (USA)"

---The steps that flows may use, and what each needs.
---@class (exact) moongate.Providers
---@field phone_otp? moongate.Provider.phone_otp|moongate.Instance
---@field email_code? moongate.Provider.email_code|moongate.Instance
---@field pin? moongate.Provider.pin|moongate.Instance
---@field password? moongate.Provider.password|moongate.Instance
---@field google_oauth? moongate.Provider.google_oauth|moongate.Instance
---@field totp? moongate.Provider.totp|moongate.Instance
---@field passkey? moongate.Provider.passkey|moongate.Instance
---@field [string] moongate.Exec|moongate.Instance

---@class (exact) moongate.Facts.flow
---@field name string the flow's name
---@field passed table<string, true?> the providers that were passed in this flow

---@class (exact) moongate.Facts.phone
---@field e164 string? the number with + and country code
---@field country string? the number's country in two letters
---@field type string? what kind of number it is: mobile, fixed, voip or unknown

---@class (exact) moongate.Facts.email
---@field address string? the address in lower case
---@field domain string? what stands behind its @

---@class (exact) moongate.Facts.account
---@field exists boolean whether there is an account
---@field id string? its id; nil without one
---@field age integer? seconds since it was made
---@field idle integer? seconds since it was last here: a number that was given to someone else has been idle for long
---@field has_pin boolean whether it has a PIN
---@field has_email boolean whether it has an address
---@field email_verified boolean whether the address was proved
---@field phone_verified boolean whether the number was proved
---@field factors table<string, true?> the providers that keep a secret of it: its PIN, its authenticator app

---@class (exact) moongate.Facts.client
---@field ip string the client's address
---@field network string its network, /24 or /48
---@field user_agent string? what the client says it is
---@field new_device boolean whether the device has not passed this identifier before
---@field network_changed boolean whether the network is another than the flow began in

---@class (exact) moongate.Facts.clock
---@field suspect boolean whether the machine's clock has jumped

---@class (exact) moongate.Facts.request
---@field method string in capitals
---@field host string in lower case
---@field path string as it was sent, percent-encoded
---@field query string what stands behind ?

---@class (exact) moongate.Facts.session
---@field account string the account's id
---@field passed table<string, integer?> by provider, when it was passed in Unix seconds
---@field age integer seconds since the session began
---@field aal integer 1: one factor; 2: two
---@field groups table<string, true?> the groups of accounts.lua that the account is in
---@field claims table<string, string|number|boolean|nil> the claims of accounts.lua about the account
---@field email string? the account's verified address in lower case
---@field phone string? the account's verified number with + and country code
---@field email_verified boolean whether the account has a verified address

---@class (exact) moongate.Facts.providers.phone_otp
---@field country string? the number's country in two letters
---@field type string? what kind of number it is: mobile, fixed, voip or unknown

---@class (exact) moongate.Facts.providers.email_code
---@field domain string? what stands behind its @

---@class (exact) moongate.Facts.providers.password
---@field domain string? what stands behind its @

---@class (exact) moongate.Facts.providers.google_oauth
---@field domain string? what stands behind its @

---@class (exact) moongate.Facts.providers.passkey
---@field uv boolean? whether the device verified the person, by its PIN or a fingerprint
---@field backed_up boolean? whether the passkey is synced to other devices
---@field aaguid string? the model of the authenticator as a UUID; the device's own word without attestation

---@class (exact) moongate.Facts.phone_otp
---@field country string? the number's country in two letters
---@field type string? what kind of number it is: mobile, fixed, voip or unknown

---@class (exact) moongate.Facts.email_code
---@field domain string? what stands behind its @

---@class (exact) moongate.Facts.password
---@field domain string? what stands behind its @

---@class (exact) moongate.Facts.google_oauth
---@field domain string? what stands behind its @

---@class (exact) moongate.Facts.passkey
---@field uv boolean? whether the device verified the person, by its PIN or a fingerprint
---@field backed_up boolean? whether the passkey is synced to other devices
---@field aaguid string? the model of the authenticator as a UUID; the device's own word without attestation

---@class (exact) moongate.Facts.providers
---@field phone_otp moongate.Facts.providers.phone_otp what `phone_otp` has told in this flow
---@field email_code moongate.Facts.providers.email_code what `email_code` has told in this flow
---@field password moongate.Facts.providers.password what `password` has told in this flow
---@field google_oauth moongate.Facts.providers.google_oauth what `google_oauth` has told in this flow
---@field passkey moongate.Facts.providers.passkey what `passkey` has told in this flow

---@class (exact) moongate.Facts.limit
---@field used integer events that count before this one
---@field max integer as it is for this call
---@field locked_until integer? Unix seconds; nil without a lock

---What `send`, `verify` and the functions of `vary` are told.
---@class (exact) moongate.PolicyFacts
---@field now integer Unix seconds
---@field action "send"|"verify" what is about to happen
---@field provider string the provider of the step
---@field flow moongate.Facts.flow
---@field identifier string? the number or address, in its canonical spelling
---@field phone moongate.Facts.phone
---@field email moongate.Facts.email
---@field account moongate.Facts.account
---@field client moongate.Facts.client
---@field clock moongate.Facts.clock
---@field providers moongate.Facts.providers
---@field phone_otp moongate.Facts.phone_otp
---@field email_code moongate.Facts.email_code
---@field password moongate.Facts.password
---@field google_oauth moongate.Facts.google_oauth
---@field passkey moongate.Facts.passkey
---@field limits table<string, moongate.Facts.limit> by their names

---What `when` of a step is told.
---@class (exact) moongate.FlowFacts
---@field now integer Unix seconds
---@field provider string the provider of the step
---@field flow moongate.Facts.flow
---@field identifier string? the number or address, in its canonical spelling
---@field phone moongate.Facts.phone
---@field email moongate.Facts.email
---@field account moongate.Facts.account
---@field client moongate.Facts.client
---@field clock moongate.Facts.clock
---@field providers moongate.Facts.providers
---@field phone_otp moongate.Facts.phone_otp
---@field email_code moongate.Facts.email_code
---@field password moongate.Facts.password
---@field google_oauth moongate.Facts.google_oauth
---@field passkey moongate.Facts.passkey

---What `decide` of a route is told.
---@class (exact) moongate.RouteFacts
---@field now integer Unix seconds
---@field client moongate.Facts.client
---@field clock moongate.Facts.clock
---@field request moongate.Facts.request
---@field session moongate.Facts.session

---What functions of `groups` and `claims` are told.
---@class (exact) moongate.EntitlementFacts
---@field now integer Unix seconds
---@field phone moongate.Facts.phone
---@field email moongate.Facts.email
---@field account moongate.Facts.account
---@field session moongate.Facts.session

---Lets through.
---@type moongate.Decision
allow = nil

---gateway.lua returns this.
---@param body moongate.Gateway
---@return moongate.File
function gateway(body) end

---routes.lua returns this.
---@param list moongate.Route[]
---@return moongate.File
function routes(list) end

---policies/NAME.lua returns this: policy "NAME" { … }.
---@param provider string
---@return fun(body: moongate.Policy): moongate.File
function policy(provider) end

---flows/NAME.lua returns this: flow "NAME" { … }.
---@param name string
---@return fun(body: moongate.Flow): moongate.File
function flow(name) end

---accounts.lua returns this.
---@param body moongate.Accounts
---@return moongate.File
function accounts(body) end

---guarantees.lua returns this.
---@param list moongate.Statement[]
---@return moongate.File
function guarantees(list) end

---What is always true of sessions, in your own words: guarantee "statement" { … }. In a case, guarantee "statement" demands it of the session.
---@param statement string
---@return moongate.Act|fun(body: moongate.Guarantee): moongate.Statement
function guarantee(statement) end

---tests/NAME.lua returns this.
---@param cases moongate.Case[]
---@return moongate.File
function tests(cases) end

---What a person does, in order, and what is expected: case "what it shows" { … }.
---@param name string
---@return fun(acts: (moongate.Act|fun(body: moongate.Flow): moongate.File)[]): moongate.Case
function case(name) end

---Who it is, as they would type it.
---@param number string
---@return moongate.Act
function phone(number) end

---Who it is, as they would type it.
---@param address string
---@return moongate.Act
function email(address) end

---Which of a step's choices to take.
---@param name string
---@return moongate.Act
function provider(name) end

---No message of this provider arrives, from here on.
---@param provider string
---@return moongate.Act
function undeliverable(provider) end

---Whether there is an account of that name.
---@param what moongate.CaseAccount
---@return moongate.Act
function account(what) end

---Adds the account to stored groups, or removes it with false.
---@param names string|string[]|table<string, boolean>
---@return moongate.Act
function group(names) end

---Requests come from a program with this service token, from here on.
---@param what string|moongate.CaseToken
---@return moongate.Act
function token(what) end

---Sets the clock to a moment with its offset, as in "2026-12-24T23:30+05:30".
---@param moment string
---@return moongate.Act
function clock(moment) end

---Where requests come from, from here on.
---@param what moongate.CaseClient
---@return moongate.Act
function client(what) end

---Begins the step: a code goes out.
---@param how? moongate.CaseSend
---@return moongate.Act
function send(how) end

---Asks for another code.
---@param how? moongate.CaseSend
---@return moongate.Act
function resend(how) end

---Enters a code that is not the one that was sent.
---@param how? moongate.CaseWrong
---@return moongate.Act
function wrong(how) end

---Answers the open step as it asks: by the code that it sent, or by the account's secret.
---@return moongate.Act
function right() end

---Gives these fields to the step that is open, or due.
---@param what table<string, string>
---@return moongate.Act
function enter(what) end

---Passes the step over.
---@return moongate.Act
function skip() end

---Asks for a page behind the gateway, signed in as by the last flow.
---@param what moongate.CaseRequest
---@return moongate.Act
function request(what) end

---Moves the clock.
---@param what moongate.Duration|moongate.CaseWait
---@return moongate.Act
function wait(what) end

---What the answer before it must be.
---@param what moongate.CaseExpect
---@return moongate.Act
function expect(what) end

---A step that any of these providers passes, or any one of these groups.
---@param names string[]
---@return moongate.AnyOf
function any_of(names) end

---A group whose members `moongate group add` and `group remove` change.
---@return moongate.Members
function members() end

---A step whose code the first of these providers sends, and each next one where the one before it cannot deliver it.
---@param providers string[]
---@return moongate.Fallback
function fallback(providers) end

---A provider that is another program, in any language.
---@param program moongate.Program
---@return moongate.Exec
function exec(program) end

---A secret from the environment.
---@param name string
---@return moongate.Secret
function env(name) end

---A secret that systemd hands over, as LoadCredential= in the unit names it.
---@param name string
---@return moongate.Secret
function credential(name) end

---A secret from a file: file "path". In `audit`: a file with an event a line: file { path = "…" }.
---@param path string|moongate.AuditFile
---@return moongate.Secret|moongate.AuditSink
function file(path) end

---In `audit`: sends events to a syslog server.
---@param settings? moongate.AuditSyslog
---@return moongate.AuditSink
function syslog(settings) end

---In `tracing`: sends spans of requests to a collector of OpenTelemetry.
---@param settings moongate.OTLP
---@return moongate.Tracing
function otlp(settings) end

---Sends nothing: keeps messages in memory and shows them on the admin listener.
---@param settings? moongate.Outbox
---@return moongate.Delivery
function outbox(settings) end

---Posts messages to a site; in `audit`, events.
---@param settings moongate.Webhook|moongate.AuditWebhook
---@return moongate.Delivery|moongate.AuditSink
function webhook(settings) end

---Sends SMS by Twilio.
---@param settings moongate.Twilio
---@return moongate.Delivery
function twilio(settings) end

---Sends mail by a mail server.
---@param settings moongate.SMTP
---@return moongate.Delivery
function smtp(settings) end

---A number or duration that a function chooses between two bounds.
---@param lowest any
---@param highest any
---@param choose fun(f: moongate.PolicyFacts): any
---@return moongate.Vary
function vary(lowest, highest, choose) end

---Refuses; the reason, in snake case, reaches the log and the client.
---@param reason string
---@return moongate.Decision
function deny(reason) end

---Lets through only after this provider was passed as well.
---@param provider string
---@return moongate.Decision
function require_also(provider) end

---Whether the text begins with another.
---@param text string
---@param start string
---@return boolean
function starts_with(text, start) end

---Whether the text ends with another.
---@param text string
---@param ending string
---@return boolean
function ends_with(text, ending) end

---Whether the text holds another.
---@param text string
---@param part string
---@return boolean
function contains(text, part) end

---Whether the text fits a pattern in which * is any run of bytes.
---@param text string
---@param pattern string
---@return boolean
function glob(text, pattern) end

---Whether an address lies in a block such as "10.0.0.0/8".
---@param block string
---@param address string
---@return boolean
function cidr(block, address) end

---Whether a list holds the value.
---@param value any
---@param list any[]
---@return boolean
function one_of(value, list) end

---A duration in seconds, for sums with f.now and the ages.
---@param text moongate.Duration
---@return number
function duration(text) end

---The hour of the day (0 to 23) in a time zone such as "Asia/Kolkata".
---@param seconds integer
---@param zone string
---@return integer
function hour(seconds, zone) end

---Raises the message where the value is false or nil.
---@param value any
---@param message? any
---@param ... any
---@return any
function assert(value, message, ...) end

---Raises an error: the decision is policy_error.
---@param message any
---@param level? integer
function error(message, level) end

---Walks over a list.
---@param list table
---@return fun(list: table, index: integer): integer, any
function ipairs(list) end

---Walks over a table, in sorted order of its keys.
---@param table table
---@return fun(table: table, key: any): any, any
function pairs(table) end

---Calls and catches errors; what stops a policy cannot be caught.
---@param body function
---@param ... any
---@return boolean, any
function pcall(body, ...) end

---The arguments from an index on, or their number.
---@param index integer|"#"
---@param ... any
---@return any
function select(index, ...) end

---The number that a text spells.
---@param value any
---@param base? integer
---@return number?
function tonumber(value, base) end

---The value as text; a table's tells no address.
---@param value any
---@return string
function tostring(value) end

---The name of the value's type.
---@param value any
---@return string
function type(value) end

---In gateway.lua: an instance of `phone_otp` under another name.
---@param settings moongate.Provider.phone_otp
---@return moongate.Instance
function phone_otp(settings) end

---In gateway.lua: an instance of `email_code` under another name.
---@param settings moongate.Provider.email_code
---@return moongate.Instance
function email_code(settings) end

---In gateway.lua: an instance of `pin` under another name.
---@param settings moongate.Provider.pin
---@return moongate.Instance
function pin(settings) end

---In gateway.lua: an instance of `password` under another name.
---@param settings moongate.Provider.password
---@return moongate.Instance
function password(settings) end

---In gateway.lua: an instance of `google_oauth` under another name.
---@param settings moongate.Provider.google_oauth
---@return moongate.Instance
function google_oauth(settings) end

---In gateway.lua: an instance of `totp` under another name.
---@param settings moongate.Provider.totp
---@return moongate.Instance
function totp(settings) end

---In gateway.lua: an instance of `passkey` under another name.
---@param settings moongate.Provider.passkey
---@return moongate.Instance
function passkey(settings) end
