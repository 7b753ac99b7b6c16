-- The policy of the providers of test_libraries.py.
return policy "probe" {
  limits = { verify = { on = "verify", per = "account", max = 5, window = "24h", counts = "failures",
    lock = { "15m" } } },
  unknown_account = "conceal",
}
