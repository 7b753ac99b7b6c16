-- The gateway itself: addresses, storage, providers. Changes of `listen`, `admin`, `store`, `key`
-- and `app_api` need a restart. All other changes take effect within two seconds. Relative paths
-- start at this folder. `moongate help gateway` explains every field.
return gateway {
  -- The public listener: pages, API, and the requests for your services.
  listen = "127.0.0.1:8080",

  -- The admin listener: health, metrics, reload, locks, outbox. Its clients have full control, so
  -- keep it on loopback. An address that other machines can reach needs a token:
  -- admin = { address = "10.0.0.5:9901", token = env "MOONGATE_ADMIN_TOKEN" }
  admin = "127.0.0.1:9901",

  -- The address of the gateway in browsers. Use https, except on your own machine.
  public_url = "http://localhost:8080",

  -- TLS without a proxy in front: certificate and key as PEM files.
  -- tls = { cert = "tls/cert.pem", key = "tls/key.pem" },

  -- How long browsers must use https only (HSTS). false: no HSTS.
  -- hsts = "365d",

  -- The database: a SQLite file, or PostgreSQL if several gateways share it:
  -- store = env "MOONGATE_STORE", with postgres://user:password@host/database?sslmode=verify-full
  store = "sqlite:data/moongate.db",

  -- The master key, which encrypts secrets in the database. The file is created at the first start.
  -- Keep a copy of it, apart from the database. Or use env "MOONGATE_KEY".
  key = file "data/master.key",

  -- The country of phone numbers that are typed without "+" (two letters, ISO 3166-1).
  region = "IN",

  -- The proxies whose X-Forwarded-For, -Proto and -Host are trusted. Default: none.
  -- trusted_proxies = { "127.0.0.1/32" },

  -- Further hosts to which users may return after sign-in. Hosts of routes.lua are included.
  -- Codes of apps never go there: register addresses of apps in apps.lua.
  -- redirect_hosts = { "app.example.com" },

  -- One session for this domain and its subdomains. Default: only the host of public_url.
  -- cookie_domain = "example.com",

  -- Origins of other sites whose pages may call /api/auth.
  -- cors_origins = { "https://spa.example.com" },

  -- The calls of the App API (v1), such as /api/auth/send-otp, and the events that hosted pages
  -- report to the audit trail. Default: false.
  app_api = true,

  -- The name of the service in messages: {service} in their texts.
  service = "Moongate",

  -- The look of the pages: name, logo (file or URL), main color, and the "Contact us" link.
  brand = { name = "Moongate", primary = "#0D7377", support = "mailto:help@example.com" },

  -- The languages of pages and messages. The first one is the default. Others than English and
  -- Hindi are files in pages/: Documentation/languages has drafts of eight to copy.
  -- languages = { "en", "hi" },

  -- The accepted probability that an attacker guesses a code, per identifier. `moongate check`
  -- refuses policies that exceed it.
  risk_budget = "0.1% per 30d",

  -- The maximum number of connections. Further fields:
  --   per_ip = { connections = 200, requests = "100/s" }   for each client IP address
  --   flows = { count = 100000, bytes = "64MiB" }          for flows that have verified nothing yet
  limits = { connections = 50000 },

  -- The providers that flows may use, and their settings.
  providers = {
    -- Codes by SMS. outbox() sends nothing. It shows the messages on
    -- http://127.0.0.1:9901/outbox, and works only if public_url is on this machine.
    phone_otp = { sms = outbox() },
    -- Codes by email.
    email_code = { mail = outbox() },
    -- Google. This `issuer` is a mock of the demo service, in which anyone can be anyone. It works
    -- only if public_url and listen are on this machine. To use Google, remove `issuer` and
    -- `trusted_domains`, and set the client ID and the client secret that Google issued to you.
    -- A verified address at one of the trusted domains joins the account that has it. Any other
    -- address stays unverified.
    google_oauth = {
      issuer = "http://127.0.0.1:3000/mock-google",
      client_id = "moongate-demo",
      client_secret = file "data/google.secret",
      trusted_domains = { "gmail.com" },
    },
    -- A passcode of six digits that signed-in users set up.
    pin = {},
    -- An authenticator app that signed-in users set up. `issuer` is the name that the app shows.
    totp = { issuer = "Moongate" },
    -- Passkeys. `rp_name` is the name that devices show for this site.
    passkey = { rp_name = "Moongate" },
    -- Email address and password.
    password = {},
  },
}
