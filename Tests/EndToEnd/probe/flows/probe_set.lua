return flow "probe_set" { purpose = "set", provider = "probe", account = "existing", steps = { { "probe" } } }
