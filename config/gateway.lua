-- The gateway itself: where it listens, where its state lies, how messages leave. A change of `listen`, `admin`,
-- `store` or `key` takes effect at the next start; everything else within two seconds. Relative paths begin at this
-- folder.
return gateway {
  -- The public listener: pages, API, and what is passed on to your services. One address and port.
  listen = "127.0.0.1:8080",

  -- Health, metrics, reload, locks, the outbox. Any client has full control: keep it on loopback. An address
  -- that other machines reach needs a token: admin = { address = "10.0.0.5:9901", token = env "MOONGATE_ADMIN_TOKEN" }
  admin = "127.0.0.1:9901",

  -- How people reach the gateway. It decides the cookie's name and attributes and where redirects may lead. Outside
  -- your own machine this must be https.
  public_url = "http://localhost:8080",

  -- Optional: the gateway speaks TLS itself, with these PEM files. Leave it out behind a proxy that does.
  -- tls = { cert = "tls/cert.pem", key = "tls/key.pem" },

  -- For how long browsers are told to use https alone, where public_url is https; false: they are not told.
  -- hsts = "365d",

  -- Accounts, sessions, counters and locks: a SQLite file. Several gateways share one PostgreSQL: store = env
  -- "MOONGATE_STORE", with postgres://user:password@host/database?sslmode=verify-full as its value.
  store = "sqlite:data/moongate.db",

  -- The master key, which seals what the store holds. `file`: made at the first start, for its owner only; keep a copy
  -- of it apart from the store. Or `env "MOONGATE_KEY"`.
  key = file "data/master.key",

  -- The country (two letters, ISO 3166-1) of phone numbers that are typed without +.
  region = "IN",

  -- Who may send X-Forwarded-For, -Proto and -Host: only the addresses of your own proxies. Default: none.
  -- trusted_proxies = { "127.0.0.1/32" },

  -- Hosts, besides public_url's and those of routes.lua, to which people may be sent after they signed in.
  -- redirect_hosts = { "app.example.com" },

  -- One session for a domain and all below it. Default: only public_url's own host.
  -- cookie_domain = "example.com",

  -- Origins of web pages elsewhere that may call /api/auth.
  -- cors_origins = { "https://spa.example.com" },

  -- What messages call us: {service} in their texts.
  service = "Moongate",

  -- What the pages show: name, a logo (a file or an address), the main colour, and where "Contact us" leads (no link
  -- without it).
  brand = { name = "Moongate", primary = "#0D7377", support = "mailto:help@example.com" },

  -- The languages of pages and messages; the first is for people whose browser wants none of them. Default: English,
  -- Hindi and what pages/ adds. ar, bn, de, es, fr, pt, ta and te come with the gateway too, drafted by a machine: have
  -- them read by a native speaker first.
  -- languages = { "en", "hi" },

  -- The chance of guessing a code that you accept, per identifier. `moongate check` refuses policies above it.
  risk_budget = "0.1% per 30d",

  -- The most connections at a time. Two more fields:
  --   per_ip = { connections = 200, requests = "100/s" }   per client address; default: 1,000 connections, no limit
  --                                                        for requests
  --   flows = { count = 100000, bytes = "64MiB" }          flows in which nothing is verified yet; these are the
  --                                                        defaults
  limits = { connections = 50000 },

  -- The steps that flows may use, and what each needs.
  providers = {
    -- Codes by SMS. outbox() sends nothing and shows them at http://127.0.0.1:9901/outbox: only while public_url is on
    -- this machine.
    phone_otp = { sms = outbox() },
    -- Codes by mail.
    email_code = { mail = outbox() },
    -- Sign-in by Google, and here by the gateway's own mock of it, where anyone may be anyone: it works only while
    -- public_url and listen are on this machine, and its secret is made at the first start. For Google itself take
    -- `issuer` out and put in the id and the secret that it gave you.
    google_oauth = {
      issuer = "http://localhost:8080/mock-google",
      client_id = "moongate-demo",
      client_secret = file "data/google.secret",
    },
    -- A passcode of six digits, for signed-in users.
    pin = {},
    -- An authenticator app, for signed-in users. The app lists the account under `issuer`.
    totp = { issuer = "Moongate" },
    -- Passkeys: the fingerprint, face or PIN of a device. `rp_name` is what devices call the site.
    passkey = { rp_name = "Moongate" },
    -- An email address and a password.
    password = {},
  },
}
