// MoongateHTTP
